<?php
/**
 * Answers requests for a picture of an archived site: this host takes none, so a valid request gets an error.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Checks the request and says that it cannot be done. The contract wants the picture in the answer to one request, so the host
 * itself would need a browser with the site in it. The engine of browser sandboxes runs in the browser of a user, where no
 * script may take a picture of a document without an origin; the sandboxes of the host have a browser, and start from code and
 * not from an archive of a whole site with its database.
 */
final class ViewportReplay {

	/** Maximum size of the archive, in bytes. */
	private const MOST_BYTES = 26214400;

	/**
	 * Answers replay-browser-viewport.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-viewport-replay-result/v1`.
	 * @throws Failure `wp_codebox_viewport_replay_archive_invalid`, `wp_codebox_viewport_replay_route_invalid`, `wp_codebox_input_invalid`.
	 */
	public function replay( array $input ): array {
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- contents of a file.
		$archive = base64_decode( (string) ( $input['archive_base64'] ?? '' ), true );
		if ( ! is_string( $archive ) || strlen( $archive ) > self::MOST_BYTES || ! str_starts_with( $archive, 'PK' ) ) {
			throw Failure::because( ErrorCode::ViewportReplayArchiveInvalid, __( '"archive_base64" must be a zip archive of at most 25 MB, encoded in base64.', 'codebox' ), [], [ 'field' => 'archive_base64' ] );
		}
		$route = (string) ( $input['route'] ?? '' );
		if ( ! str_starts_with( $route, '/' ) || str_starts_with( $route, '//' ) || 1 === preg_match( '/[\x00-\x20\x7f\\\\]/', $route ) ) {
			throw Failure::because( ErrorCode::ViewportReplayRouteInvalid, __( '"route" must be a path from the root of the site, such as /about/.', 'codebox' ), [], [ 'field' => 'route' ] );
		}
		foreach ( [ 'width', 'height' ] as $side ) {
			if ( ! isset( $input['viewport'][ $side ] ) ) {
				throw Failure::invalid_input( __( '"viewport" needs "width" and "height", in pixels.', 'codebox' ), [], [ 'field' => "viewport.$side" ] );
			}
		}
		return [
			'success'     => false,
			'schema'      => 'wp-codebox/browser-viewport-replay-result/v1',
			'status'      => 'unsupported',
			'png_base64'  => '',
			'diagnostics' => [
				[
					'code'     => 'unsupported',
					'severity' => 'error',
					'message'  => __( 'No screenshot was taken: this version cannot restore the archive of a whole site in a sandbox, and a sandbox in a browser cannot take screenshots of its pages.', 'codebox' ),
					'instead'  => __( 'Mount the code in a workload or recipe and use the command wordpress.browser-probe with capture=screenshot and this viewport.', 'codebox' ),
				],
			],
		];
	}
}
