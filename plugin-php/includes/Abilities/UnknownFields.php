<?php
/**
 * Explains which field of an input its schema does not know.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Abilities;

use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\TaskInput\RefusedFields;

defined( 'ABSPATH' ) || exit;

/**
 * WordPress answers "x is not a valid property of Object". This class names the field with its path. For a field that
 * it knows from other systems, it adds why there is none and what to use instead; else the most similar fields, else all.
 */
final class UnknownFields {

	/** Maximum number of fields that a hint lists. */
	private const LISTED = 12;

	/**
	 * Returns the failure for the first field that the schema does not know; null when it knows all of them.
	 *
	 * @param array<string, mixed> $schema Schema.
	 * @param mixed                $value  Value that the schema refuses.
	 * @param string               $path   Path of the value, such as `mounts[0]`; empty for the whole input.
	 */
	public static function first( array $schema, mixed $value, string $path = '' ): ?Failure {
		if ( ! is_array( $value ) ) {
			return null;
		}
		if ( isset( $schema['items'] ) && array_is_list( $value ) ) {
			foreach ( $value as $index => $item ) {
				$found = self::first( $schema['items'], $item, $path . '[' . $index . ']' );
				if ( null !== $found ) {
					return $found;
				}
			}
			return null;
		}
		$known = $schema['properties'] ?? null;
		if ( ! is_array( $known ) || array_is_list( $value ) ) {
			return null;
		}
		foreach ( $value as $name => $member ) {
			$here = '' === $path ? (string) $name : $path . '.' . $name;
			if ( isset( $known[ $name ] ) ) {
				$found = self::first( $known[ $name ], $member, $here );
			} else {
				$found = false === ( $schema['additionalProperties'] ?? true ) ? self::failure( (string) $name, $here, array_map( 'strval', array_keys( $known ) ) ) : null;
			}
			if ( null !== $found ) {
				return $found;
			}
		}
		return null;
	}

	/**
	 * Returns the failure for one unknown field.
	 *
	 * @param string       $name  Name of the field.
	 * @param string       $path  Path of the field.
	 * @param list<string> $known Names of the known fields of the same object.
	 */
	private static function failure( string $name, string $path, array $known ): Failure {
		$reason = match ( $name ) {
			'artifacts_path'   => RefusedFields::artifacts_path(),
			'wp_codebox_bin'   => RefusedFields::program( $name ),
			'preview_lease'    => RefusedFields::refusal( $name, __( 'Codebox creates the lease of a preview itself when it starts the preview', 'codebox' ), __( 'Give preview_hold_seconds and, if needed, preview_port, preview_bind and preview_public_url; the answer then describes the preview.', 'codebox' ) ),
			'runner_workspace' => RefusedFields::refusal( $name, __( 'a task works on directories of this host, not on a runner workspace', 'codebox' ), __( 'Use plugin, theme, mounts or workspaces.', 'codebox' ) ),
			default            => null,
		};
		$near   = self::near( $name, $known );
		$hints  = $reason->hints ?? [];
		if ( null === $reason && [] !== $near ) {
			/* translators: %s: list of names. */
			$hints[] = Sentence::of( __( 'Similar fields: %s.', 'codebox' ), implode( ', ', $near ) );
		} elseif ( null === $reason ) {
			/* translators: %s: list of names. */
			$hints[] = Sentence::of( __( 'Its fields: %s.', 'codebox' ), implode( ', ', array_slice( $known, 0, self::LISTED ) ) . ( count( $known ) > self::LISTED ? ', …' : '' ) );
		}
		return Failure::invalid_input(
			/* translators: %s: name of a field. */
			$reason?->getMessage() ?? Sentence::of( __( 'The input has no field "%s".', 'codebox' ), sanitize_text_field( $path ) ),
			$hints,
			[
				'field'   => sanitize_text_field( $path ),
				'allowed' => $known,
			]
		);
	}

	/**
	 * Returns the most similar names, best first.
	 *
	 * @param string       $name  Unknown name.
	 * @param list<string> $known Known names.
	 * @return list<string>
	 */
	private static function near( string $name, array $known ): array {
		// levenshtein() takes time in proportion to the product of both lengths.
		$name  = substr( strtolower( strtr( $name, [ '-' => '_' ] ) ), 0, 64 );
		$most  = max( 2, intdiv( strlen( $name ), 3 ) );
		$found = [];
		foreach ( $known as $other ) {
			$distance = levenshtein( $name, strtolower( $other ) );
			if ( $distance <= $most || ( strlen( $name ) > 3 && ( str_contains( $other, $name ) || str_contains( $name, $other ) ) ) ) {
				$found[ $other ] = $distance;
			}
		}
		asort( $found );
		return array_slice( array_map( 'strval', array_keys( $found ) ), 0, 3 );
	}
}
