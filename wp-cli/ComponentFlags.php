<?php
/**
 * Flags that name components (plugins that the sandbox loads beside the mounted code) and the runtime task (an
 * ability of a component that does the work).
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Converts `--runtime-task`, `--component`, `--provider-plugin-paths` and `--agent-bundles` to task fields.
 */
final class ComponentFlags {

	/**
	 * Returns the task fields of the flags that were given.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function fields( array $flags ): array {
		$fields = [];
		if ( isset( $flags['runtime-task'] ) ) {
			$text                   = trim( (string) $flags['runtime-task'] );
			$fields['runtime_task'] = str_starts_with( $text, '{' ) ? FlagList::json_object( '--runtime-task', $text ) : [ 'ability' => $text ];
		}
		if ( isset( $flags['component'] ) ) {
			$fields['component_contracts'] = array_map( [ self::class, 'contract' ], self::rows( '--component', (string) $flags['component'] ) );
		}
		if ( isset( $flags['provider-plugin-paths'] ) ) {
			$fields['provider_plugin_paths'] = array_map( [ self::class, 'path' ], FlagList::split( '--provider-plugin-paths', (string) $flags['provider-plugin-paths'] ) );
		}
		if ( isset( $flags['agent-bundles'] ) ) {
			$fields['agent_bundles'] = array_map(
				static fn( mixed $row ): array => is_array( $row ) ? $row : [ 'source' => self::path( (string) $row ) ],
				self::rows( '--agent-bundles', (string) $flags['agent-bundles'] )
			);
		}
		return $fields;
	}

	/**
	 * Parses a JSON list of strings and objects, or strings separated by commas.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @return list<string|array<string, mixed>>
	 */
	private static function rows( string $flag, string $text ): array {
		if ( ! str_starts_with( ltrim( $text ), '[' ) ) {
			return FlagList::split( $flag, $text );
		}
		$rows = json_decode( $text, true );
		$good = is_array( $rows ) && [] === array_filter( $rows, static fn( mixed $row ): bool => ! is_string( $row ) && ! is_array( $row ) );
		if ( ! $good ) {
			/* translators: %s: flag. */
			throw Failure::invalid_input( Sentence::of( __( '%s must be a comma-separated list, or a JSON list of strings and objects.', 'codebox' ), $flag ) );
		}
		return array_values( $rows );
	}

	/**
	 * Returns the contract of one component: the given object unchanged, or for a slug or a directory the contract of a
	 * required plugin that the sandbox activates.
	 *
	 * @param string|array<string, mixed> $row Component as the user typed it.
	 * @return array<string, mixed>
	 */
	private static function contract( string|array $row ): array {
		if ( is_array( $row ) ) {
			return $row;
		}
		$named = str_contains( $row, '/' ) ? [ 'path' => self::path( $row ) ] : [ 'slug' => $row ];
		return $named + [
			'loadAs'   => 'plugin',
			'activate' => true,
			'required' => true,
		];
	}

	/**
	 * Makes a path absolute; a name without a slash stays unchanged.
	 *
	 * @param string $text Value as the user typed it.
	 */
	private static function path( string $text ): string {
		if ( ! str_contains( $text, '/' ) && ! is_file( $text ) ) {
			return $text;
		}
		$given = str_starts_with( $text, '/' ) ? $text : getcwd() . '/' . $text;
		$real  = realpath( $given );
		return false === $real ? $given : $real;
	}
}
