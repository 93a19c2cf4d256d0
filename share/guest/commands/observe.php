<?php
/**
 * Guest program behind observations (reports between the steps of an episode): files below a path, or
 * sections of the guest's WordPress.
 *
 * Arguments: `what` is files or wordpress-state; `path` and `content` for files; `sections`, `options` and
 * `fields`, each a JSON list; `redaction` is safe or none.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/files-observation.php';
require __DIR__ . '/lib/state-observation.php';

if ( 'files' === begin()->text( 'what' ) ) {
	finish(
		static fn ( Arguments $arguments ): array => ( new Files_Observation() )->look( $arguments->text( 'path' ), 'true' === $arguments->text( 'content' ) )
	);
}
require wordpress();
finish(
	static function ( Arguments $arguments ): array {
		$list = static fn ( string $name ): array => array_values( array_filter( (array) $arguments->value( $name, array() ), 'is_string' ) );
		$seen = new State_Observation( 'none' !== $arguments->text( 'redaction' ), $list( 'options' ), $list( 'fields' ) );
		return $seen->look( $list( 'sections' ) );
	}
);
