<?php
/**
 * Schemas and their examples, through the validator of WordPress itself.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$sources   = getenv( 'TEST_ROOT' ) . '/abilities/schemas';
	$directory = getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas';
	$schemas   = glob( $directory . '/*.schema.json' );

	$t->test(
		'the schemas exist, and the manifest holds their digest',
		static function () use ( $t, $schemas, $directory ): void {
			$t->true( count( $schemas ) >= 20, 'too few schemas' );
			$names = array_map( 'basename', glob( $directory . '/*.json' ) );
			sort( $names, SORT_STRING );
			$text = '';
			foreach ( $names as $name ) {
				$bytes = (string) file_get_contents( $directory . '/' . $name );
				$text .= $name . "\n" . strlen( $bytes ) . "\n" . $bytes . "\n";
			}
			$manifest = require getenv( 'TEST_ROOT' ) . '/abilities/manifest.php';
			$t->same( hash( 'sha256', $text ), $manifest['contract_digest'], 'run: cargo xtask generate; cargo xtask dist plugin' );
		}
	);

	$t->test(
		'the fields that batch and fan-out share have the same schema as in a single task',
		static function () use ( $t, $directory ): void {
			$read   = static fn( string $name ): array => json_decode( (string) file_get_contents( "$directory/$name.v1.schema.json" ), true )['properties'];
			$fields = array_diff_key( $read( 'run-agent-task-input' ), array_flip( [ 'goal', 'wait', 'code', 'code_file', 'schema', 'version' ] ) );
			foreach ( [
				'run-agent-task-batch-input'  => [ 'tasks', 'stop_on_failure' ],
				'run-agent-task-fanout-input' => [ 'schema', 'workers', 'concurrency', 'aggregator' ],
			] as $name => $own ) {
				$t->same( $fields, array_diff_key( $read( $name ), array_flip( $own ) ), $name );
			}
		}
	);

	foreach ( $schemas as $file ) {
		$name   = basename( $file, '.v1.schema.json' );
		$schema = json_decode( (string) file_get_contents( $file ), true );
		$file     = $sources . '/examples/' . $name . '.json';
		$examples = is_file( $file ) ? json_decode( (string) file_get_contents( $file ), true ) : [];
		$is_valid = static fn( string $label ): bool => str_starts_with( $label, 'valid-' );
		$good     = array_filter( $examples, $is_valid, ARRAY_FILTER_USE_KEY );

		$t->test( "$name has a valid and an invalid example", static fn() => $t->true( count( $good ) > 0 && count( $good ) < count( $examples ), 'an example is missing' ) );
		foreach ( $examples as $label => $example ) {
			$t->test(
				"$name $label",
				static function () use ( $t, $schema, $example, $label, $is_valid ): void {
					$answer = rest_validate_value_from_schema( $example, $schema, 'input' );
					$t->same( $is_valid( $label ), true === $answer, is_wp_error( $answer ) ? $answer->get_error_message() : 'accepted' );
				}
			);
		}
		$t->test(
			"$name gives every property a type",
			static function () use ( $t, $schema, $name ): void {
				$look = static function ( array $node, string $at ) use ( &$look, $t ): void {
					// WordPress uses the type of the alternative that matches.
					$choices = $node['anyOf'] ?? $node['oneOf'] ?? [];
					$t->true( isset( $node['type'] ) || [] !== $choices, $at . ' has no type; WordPress would complain' );
					foreach ( $choices as $number => $choice ) {
						$look( $choice, "$at.$number" );
					}
					foreach ( $node['properties'] ?? [] as $key => $child ) {
						$look( $child, $at . '.' . $key );
					}
					foreach ( [ 'items', 'additionalProperties' ] as $key ) {
						if ( is_array( $node[ $key ] ?? null ) ) {
							$look( $node[ $key ], $at . '.' . $key );
						}
					}
				};
				$look( $schema, $name );
				foreach ( [ '$ref', 'const' ] as $ignored ) {
					$t->true( ! str_contains( (string) json_encode( $schema ), '"' . $ignored . '":' ), $ignored . ' is ignored by WordPress' );
				}
			}
		);
	}
};
