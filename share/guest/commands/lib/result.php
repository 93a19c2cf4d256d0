<?php
/**
 * Members that the result documents of commands share.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Returns the first members of a result document: schema id, command and status.
 *
 * @param string $schema Name of the schema, without namespace and version.
 * @param string $status Status of the result.
 * @return array{schema: string, command: string, status: string}
 */
function result( string $schema, string $status = 'ok' ): array {
	return array(
		'schema'  => "wp-codebox/$schema/v1",
		'command' => Entry::$call['command'],
		'status'  => $status,
	);
}

/**
 * Adds an error to a result document. A document with a list `errors` also gets the error there.
 *
 * @param array<string,mixed>                 $document Result document.
 * @param array{code: string, message: string} $error    Error.
 * @return array<string,mixed>
 */
function with_error( array $document, array $error ): array {
	if ( in_array( $document['status'] ?? null, array( 'ok', 'redirect' ), true ) ) {
		$document['status'] = 'error';
	}
	if ( is_array( $document['errors'] ?? null ) ) {
		$document['errors'][] = $error;
	}
	return $document + array( 'error' => $error );
}

/**
 * Lists the files that the command wrote in its result document: in `artifacts`, or in `artifacts.files` when
 * `artifacts` is an object.
 *
 * @param array<string,mixed>        $document Result document.
 * @param list<array<string,string>> $files    Rows {path, kind, contentType}.
 * @return array<string,mixed>
 */
function with_artifacts( array $document, array $files ): array {
	if ( array() === $files ) {
		return $document;
	}
	if ( is_object( $document['artifacts'] ?? null ) ) {
		$document['artifacts'] = (object) ( array( 'files' => $files ) + get_object_vars( $document['artifacts'] ) );
		return $document;
	}
	return array( 'artifacts' => $files ) + $document;
}

/**
 * Returns a diagnostic for each option that has no effect in the command.
 *
 * @param array<int|string,mixed> $options Options as given.
 * @param list<string>            $known   Options that have an effect.
 * @return list<array{code: string, message: string}>
 */
function ignored_options( array $options, array $known ): array {
	return array_map(
		static fn ( $name ): array => array(
			'code'    => 'option-without-effect',
			'message' => sprintf( 'options.%s has no effect; options with an effect: %s', cut( (string) $name, 100 ), implode( ', ', $known ) ),
		),
		array_slice( array_values( array_diff( array_keys( $options ), $known ) ), 0, 20 )
	);
}
