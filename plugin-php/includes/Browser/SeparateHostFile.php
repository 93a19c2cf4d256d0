<?php
/**
 * File that tells the separate host which pages may embed its remote page.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The remote page accepts full mode only when `separate-host.json` beside it names its own origin and the page that embeds it. Both
 * hosts serve the same plugin directory, so this site writes the file. An update of the plugin removes it; the next session writes it again.
 */
final class SeparateHostFile {

	private const NAME = 'separate-host.json';

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param string $directory Directory of the engine.
	 */
	public function __construct( private readonly string $directory ) {}

	/**
	 * Makes the file fit the settings.
	 *
	 * @param string $origin Origin of the separate host, or '' without one; then the file is removed.
	 * @throws Failure `wp_codebox_browser_host_invalid` when PHP cannot write it.
	 */
	public function put( string $origin ): void {
		$path = $this->directory . '/' . self::NAME;
		if ( '' === $origin ) {
			is_file( $path ) && wp_delete_file( $path );
			return;
		}
		$text = (string) wp_json_encode(
			[
				'origin'    => $origin,
				'embedders' => self::embedders(),
			],
			JSON_UNESCAPED_SLASHES
		) . "\n";
		// phpcs:disable WordPress.WP.AlternativeFunctions -- rename() replaces in one step; no request has FTP credentials.
		if ( is_file( $path ) && file_get_contents( $path ) === $text ) {
			return;
		}
		$staged = $path . '.' . bin2hex( random_bytes( 4 ) );
		if ( ! is_writable( $this->directory ) || strlen( $text ) !== file_put_contents( $staged, $text, LOCK_EX ) || ! chmod( $staged, 0644 ) || ! rename( $staged, $path ) ) {
			is_file( $staged ) && unlink( $staged );
			/* translators: 1: path of a file, 2: its content. */
			throw BrowserHost::refused( Sentence::of( __( 'PHP could not write the file %1$s, which the host in the constant WP_CODEBOX_BROWSER_HOST needs. Create it with this content: %2$s', 'codebox' ), EngineFiles::DIRECTORY . '/' . self::NAME, trim( $text ) ) );
		}
		// phpcs:enable
	}

	/**
	 * Returns the origins of the pages that may embed the remote page: wp-admin of this site, on a network of each site.
	 *
	 * @return list<string>
	 */
	private static function embedders(): array {
		$origins = [ BrowserHost::origin_of( admin_url() ) ];
		foreach ( is_multisite() ? get_sites( [ 'number' => 0 ] ) : [] as $site ) {
			$origins[] = BrowserHost::origin_of( get_admin_url( (int) $site->blog_id ) );
		}
		$origins = array_values( array_unique( $origins ) );
		sort( $origins );
		return $origins;
	}
}
