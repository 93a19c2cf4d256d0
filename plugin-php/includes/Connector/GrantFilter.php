<?php
/**
 * Filter of the scopes that are granted to application passwords.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use WPCodebox\PermissionFilter;

defined( 'ABSPATH' ) || exit;

/** Lets code of this site take grants away, for each call. */
final class GrantFilter {

	private const HOOK = 'wp_codebox_trusted_browser_session_callers';

	/**
	 * Returns the grants that the site's filter leaves.
	 *
	 * @param array<string, list<string>> $stored        Scopes by id of the application password, from the
	 *   settings.
	 * @param mixed                       $authorization Field `authorization` of the input.
	 * @param mixed                       $input         Ability input.
	 * @return array<string, list<string>>
	 */
	public static function left( array $stored, mixed $authorization, mixed $input ): array {
		/**
		 * Filters the application passwords that are trusted with scopes of browser sandboxes. The filter can
		 * only restrict: scopes that the settings do not grant stay refused.
		 *
		 * @param array<string, list<string>> $callers       Scopes by id of the application password, from
		 *   the option `wp_codebox_trusted_callers`. The filter may also return rows {caller, scopes}.
		 * @param array<string, mixed>        $authorization Field `authorization` of the input, as the
		 *   caller claims it. Only the application password of the request decides who the caller is.
		 * @param array<string, mixed>        $input         Ability input.
		 */
		$filtered = apply_filters( self::HOOK, $stored, is_array( $authorization ) ? $authorization : [], is_array( $input ) ? $input : [] );
		$granted  = [];
		foreach ( self::map( $filtered ) as $uuid => $scopes ) {
			$own = $stored[ $uuid ] ?? [];
			if ( [] !== array_diff( $scopes, $own ) ) {
				PermissionFilter::widened( self::HOOK );
			}
			$granted[ $uuid ] = array_values( array_intersect( $own, $scopes ) );
		}
		return array_filter( $granted );
	}

	/**
	 * Returns scopes by caller, from a map or from rows {caller, scopes}; other values count as no grant.
	 *
	 * @param mixed $filtered Value that the filter returned.
	 * @return array<string, list<string>>
	 */
	private static function map( mixed $filtered ): array {
		$map = [];
		foreach ( is_array( $filtered ) ? $filtered : [] as $caller => $scopes ) {
			if ( is_array( $scopes ) && is_string( $scopes['caller'] ?? null ) ) {
				[ $caller, $scopes ] = [ $scopes['caller'], $scopes['scopes'] ?? [ $scopes['scope'] ?? null ] ];
			}
			if ( is_string( $caller ) && is_array( $scopes ) ) {
				$map[ $caller ] = array_values( array_filter( $scopes, 'is_string' ) );
			}
		}
		return $map;
	}
}
