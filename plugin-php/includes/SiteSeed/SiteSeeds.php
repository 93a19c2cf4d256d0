<?php
/**
 * Content of this site that a task creates in its sandbox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\SiteSeed;

use JsonException;
use RuntimeException;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Reads the content that the field `site_seeds` selects. The extension has checked the scopes before. The content is read
 * from the database, so no filter of a plugin changes it. A user may copy what the user could export or list in this
 * site's admin screens.
 */
final class SiteSeeds {

	/** Capability that a user needs for each kind of content. */
	private const NEEDED = [
		'posts'         => 'export',
		'terms'         => 'export',
		'media'         => 'export',
		'users'         => 'list_users',
		'options'       => 'manage_options',
		'activePlugins' => 'manage_options',
		'activeTheme'   => 'manage_options',
	];

	/**
	 * Returns the seeds with the content that they select.
	 *
	 * @param mixed     $seeds     Field `site_seeds`: rows {type, name, scopes}.
	 * @param Authority $authority User or operator the call runs as.
	 * @return list<array{name: string, scopes: array<string, mixed>, content: string}>
	 * @throws Failure `wp_codebox_forbidden`, `wp_codebox_site_seed_invalid`.
	 */
	public function resolved( mixed $seeds, Authority $authority ): array {
		$resolved = [];
		foreach ( array_values( is_array( $seeds ) ? $seeds : [] ) as $index => $seed ) {
			$name   = (string) ( $seed['name'] ?? '' );
			$scopes = (array) ( $seed['scopes'] ?? [] );
			$this->check( $index, $scopes, $authority );
			try {
				$content = ( new SiteContent( new SiteDatabase(), $scopes ) )->json( $name );
			} catch ( RuntimeException | JsonException $thrown ) {
				throw Failure::because(
					ErrorCode::SiteSeedInvalid,
					/* translators: 1: index of a row, 2: reason. */
					Sentence::of( __( 'site_seeds[%1$d] cannot be read: %2$s.', 'codebox' ), $index, $thrown->getMessage() ),
					[],
					[ 'field' => "site_seeds[$index]" ]
				);
			}
			$resolved[] = [
				'name'    => $name,
				'scopes'  => $scopes,
				'content' => $content,
			];
		}
		return $resolved;
	}

	/**
	 * Returns what the bundle says about the seeds: names and kinds of content, no content.
	 *
	 * @param list<array{name: string, scopes: array<string, mixed>, content: string}> $resolved Seeds.
	 * @return list<array{name: string, kinds: list<string>}>
	 */
	public static function provenance( array $resolved ): array {
		return array_map(
			static fn( array $seed ): array => [
				'name'  => $seed['name'],
				'kinds' => array_keys( array_filter( $seed['scopes'] ) ),
			],
			$resolved
		);
	}

	/**
	 * Fails when the user may not read a kind of content that a seed selects. The operator may read all of it.
	 *
	 * @param int                  $index     Index of the seed.
	 * @param array<string, mixed> $scopes    Scopes of the seed.
	 * @param Authority            $authority User or operator the call runs as.
	 */
	private function check( int $index, array $scopes, Authority $authority ): void {
		if ( Authority::Operator === $authority ) {
			return;
		}
		foreach ( array_intersect_key( self::NEEDED, array_filter( $scopes ) ) as $kind => $capability ) {
			// phpcs:ignore WordPress.WP.Capabilities -- capabilities of WordPress.
			if ( ! current_user_can( $capability ) ) {
				throw Failure::because(
					ErrorCode::Forbidden,
					/* translators: 1: index of a row, 2: kind of content, 3: name of a capability. */
					Sentence::of( __( 'site_seeds[%1$d] selects %2$s, for which you need the capability %3$s.', 'codebox' ), $index, $kind, $capability ),
					[ __( 'Leave this kind of content out of "scopes", or ask an administrator to start the task.', 'codebox' ) ],
					[ 'field' => "site_seeds[$index].scopes.$kind" ]
				);
			}
		}
	}
}
