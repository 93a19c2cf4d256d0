<?php
/**
 * Which contained site (a WordPress in a browser session) a caller means.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Site, digest, session and scope as the caller gave them; none of them is verified. */
final class SiteReference {

	/**
	 * Creates a reference.
	 *
	 * @param string $site_id    Id of the site, or ''.
	 * @param string $digest     SHA-256 of its sources, or ''.
	 * @param string $session_id Id of its session, or ''.
	 * @param string $scope      Scope of its session, or ''.
	 */
	private function __construct(
		public readonly string $site_id,
		public readonly string $digest,
		public readonly string $session_id,
		public readonly string $scope
	) {}

	/**
	 * Reads the reference of an input: its own fields, then `contained_site`, then `recovery`.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @throws Failure `wp_codebox_browser_contained_site_ref_invalid` when the parts contradict each other.
	 */
	public static function from( array $input ): self {
		$site     = (array) ( $input['contained_site'] ?? [] );
		$recovery = (array) ( ( $input['recovery'] ?? [] )['input'] ?? $input['recovery'] ?? [] );
		return new self(
			self::one( 'site_id', '/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/D', [ $input['site_id'] ?? null, $input['cache_key'] ?? null, $site['site_id'] ?? null, $recovery['cache_key'] ?? null, $recovery['site_id'] ?? null ] ),
			self::one( 'source_digest', '/^[0-9a-f]{64}$/D', array_map( [ self::class, 'digest_of' ], [ $input['input_hash'] ?? null, $input['source_digest'] ?? null, $site['source_digest'] ?? null, $recovery['input_hash'] ?? null, $recovery['source_digest'] ?? null ] ) ),
			self::one( 'session_id', '/^[\x21-\x7e]{1,200}$/D', [ $input['session_id'] ?? null, $site['session_id'] ?? null ] ),
			self::one( 'scope', '/^[A-Za-z0-9_-]{1,64}$/D', [ $input['scope'] ?? null ] )
		);
	}

	/**
	 * Returns this reference if it names a site.
	 *
	 * @throws Failure `wp_codebox_browser_contained_site_ref_missing` when it does not.
	 */
	public function required(): self {
		if ( '' === $this->site_id ) {
			throw Failure::because( ErrorCode::BrowserContainedSiteRefMissing, __( 'The input names no site in a browser: give "contained_site", or "site_id" and "source_digest".', 'codebox' ), [], [ 'field' => 'contained_site' ] );
		}
		return $this;
	}

	/**
	 * Returns the digest in lower case.
	 *
	 * @param mixed $given String, or object with algorithm and value.
	 */
	private static function digest_of( mixed $given ): mixed {
		$value = is_array( $given ) ? $given['value'] ?? null : $given;
		return is_string( $value ) ? strtolower( trim( $value ) ) : $value;
	}

	/**
	 * Returns the only value among several.
	 *
	 * @param string       $field  Name of the field, for the error.
	 * @param string       $form   Pattern of a value.
	 * @param array<mixed> $values Values; null and '' count as absent.
	 */
	private static function one( string $field, string $form, array $values ): string {
		$values = array_values( array_unique( array_filter( $values, static fn( mixed $value ): bool => null !== $value && '' !== $value ), SORT_REGULAR ) );
		if ( [] === $values ) {
			return '';
		}
		if ( 1 < count( $values ) || ! is_string( $values[0] ) || 1 !== preg_match( $form, $values[0] ) ) {
			throw Failure::because(
				ErrorCode::BrowserContainedSiteRefInvalid,
				1 < count( $values )
					/* translators: %s: name of a field. */
					? Sentence::of( __( 'The input has two different values for "%s"; give only one.', 'codebox' ), $field )
					/* translators: %s: name of a field. */
					: Sentence::of( __( 'The value of "%s" has an invalid form; copy it unchanged from an answer of an ability of Codebox.', 'codebox' ), $field ),
				[],
				[ 'field' => $field ]
			);
		}
		return $values[0];
	}
}
