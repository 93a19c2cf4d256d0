<?php
/**
 * Runs workloads (PHP files or lists of command steps in the guest) and reads their results.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/processes.php';

/** Size limit of a file with steps, and of a result document that a workload wrote, in bytes. */
const WORKLOAD_BYTES = 1048576;

/** Maximum number of steps in a workload. */
const WORKLOAD_STEPS = 100;

/** Maximum number of output bytes that are kept for each step. */
const WORKLOAD_OUTPUT_BYTES = 262144;

/** Commands that a step may name, each with the arguments of its program; must match the command registry. */
const WORKLOAD_COMMANDS = array(
	'wordpress.run-php'            => array( 'code', 'code-file' ),
	'wordpress.wp-cli'             => array( 'command' ),
	'wordpress.ability'            => array( 'name', 'input', 'expected-result-schema', 'user', 'session', 'principal', 'principal-json' ),
	'wordpress.rest-request'       => array( 'method', 'path', 'headers-json', 'params-json', 'body', 'body-json', 'user', 'session' ),
	'wordpress.db-operation'       => array( 'operation-json' ),
	'wordpress.runtime-discovery'  => array( 'surface' ),
	'wordpress.inventory-database' => array(),
	'wordpress.bench'              => array( 'component-id', 'plugin-slug', 'iterations', 'warmup', 'dependency-slugs', 'env-json', 'bootstrap-files-json', 'workloads-json', 'scenario-ids-json', 'lifecycle-json', 'reset-policy-json' ),
);

/**
 * Runs the workload file that the command's arguments name.
 *
 * @param Arguments $arguments Arguments path, file, type.
 * @return array<string,mixed> `wp-codebox/wordpress-workload-result/v1`.
 */
function workload( Arguments $arguments ): array {
	$path = $arguments->first( 'path', 'file' );
	if ( '' === $path ) {
		throw Refusal::input( 'name a file of the guest: path=/workspace/…' );
	}
	if ( ! str_starts_with( $path, '/' ) ) {
		$path = rtrim( (string) getcwd(), '/' ) . '/' . $path;
	}
	$type = $arguments->word( 'type', array( 'php', 'json' ), str_ends_with( $path, '.json' ) ? 'json' : 'php' );
	if ( ! is_file( root() . $path ) || ! is_readable( root() . $path ) ) {
		throw new Refusal( 'workload-missing', sprintf( 'there is no readable file %s in the guest', Arguments::shown( $path ) ) );
	}
	$steps    = 'php' === $type ? array( array( 'command' => 'wordpress.run-php', 'args' => array( 'code-file' => $path ) ) ) : workload_steps( root() . $path );
	$document = array(
		'schema' => 'wp-codebox/wordpress-workload-result/v1',
		'path'   => $path,
		'type'   => $type,
		'status' => 'completed',
		'steps'  => array(),
	);
	foreach ( $steps as $index => $step ) {
		$row                 = array( 'index' => $index ) + workload_step( $step, $arguments->mounts );
		$document['steps'][] = $row;
		if ( 'ok' !== $row['status'] && true !== ( $step['allowFailure'] ?? false ) ) {
			$document['status'] = 'failed';
			throw new Refusal( 'workload-failed', sprintf( 'step %d, %s, failed: %s', $index, $row['command'], $row['message'] ?? 'it gave no reason' ), $document );
		}
	}
	return $document;
}

/**
 * Reads the steps of a workload file.
 *
 * @param string $file Path of the file.
 * @return list<array<string,mixed>>
 */
function workload_steps( string $file ): array {
	if ( filesize( $file ) > WORKLOAD_BYTES ) {
		throw Refusal::input( sprintf( 'a file with workload steps may have at most %d bytes', WORKLOAD_BYTES ) );
	}
	$steps = json_decode( (string) file_get_contents( $file ), true );
	$steps = is_array( $steps ) && isset( $steps['steps'] ) ? Arguments::closed( $steps, array( 'steps' ), 'the file of steps' )['steps'] : $steps;
	if ( ! is_array( $steps ) || ! array_is_list( $steps ) || array() === $steps || count( $steps ) > WORKLOAD_STEPS ) {
		throw Refusal::input( sprintf( 'a file with workload steps must be a JSON list of 1 to %d steps {command, args}, or {steps: […]}', WORKLOAD_STEPS ) );
	}
	foreach ( $steps as $index => $step ) {
		if ( ! is_array( $step ) || ! is_string( $step['command'] ?? null ) ) {
			throw Refusal::input( "step $index must be {command, args}" );
		}
		if ( ! isset( WORKLOAD_COMMANDS[ $step['command'] ] ) ) {
			throw Refusal::unsupported( sprintf( 'a step of a workload cannot run %s; it can run %s', Arguments::shown( $step['command'] ), implode( ', ', array_keys( WORKLOAD_COMMANDS ) ) ) );
		}
		Arguments::closed( $step, array( 'command', 'args', 'allowFailure' ), "step $index" );
		$steps[ $index ]['args'] = Arguments::closed( step_args( $index, $step['args'] ?? array() ), WORKLOAD_COMMANDS[ $step['command'] ], "step $index ({$step['command']})" );
	}
	return $steps;
}

/**
 * Returns the arguments of a step by name, from an object or a list of `name=value`.
 *
 * @param int   $index Index of the step.
 * @param mixed $given Arguments as the step gives them.
 * @return array<string,string>
 */
function step_args( int $index, mixed $given ): array {
	$args = array();
	foreach ( is_array( $given ) ? $given : array( null ) as $name => $value ) {
		if ( is_int( $name ) && is_string( $value ) && str_contains( $value, '=' ) ) {
			list( $name, $value ) = explode( '=', $value, 2 );
		}
		if ( ! is_string( $name ) || is_object( $value ) || null === $value ) {
			throw Refusal::input( "the arguments of step $index are neither an object nor a list of name=value" );
		}
		$args[ $name ] = is_array( $value ) ? (string) json_encode( $value, JSON_UNESCAPED_SLASHES ) : ( is_bool( $value ) ? ( $value ? '1' : '0' ) : (string) $value );
	}
	return $args;
}

/**
 * Returns PHP code as the content of a PHP file: with an opening tag, unless it has one.
 *
 * @param string $code PHP code.
 */
function php_source( string $code ): string {
	return 1 === preg_match( '/^\s*<\?(?:php\b|=)/i', $code ) ? ltrim( $code ) : "<?php\n" . $code;
}

/**
 * Runs one step of a workload in its own process.
 *
 * @param array<string,mixed> $step   Step {command, args}.
 * @param list<mixed>         $mounts Mounts of the guest.
 * @return array<string,mixed> Result {command, status, exitCode, result?, output?, message?}.
 */
function workload_step( array $step, array $mounts ): array {
	$command = $step['command'];
	$args    = $step['args'];
	$guest   = dirname( __DIR__, 2 );
	$ended   = match ( $command ) {
		'wordpress.run-php' => process( isset( $args['code-file'] ) ? array( 'php', "$guest/run-php.php", root() . $args['code-file'] ) : array( 'php', "$guest/run-php.php", '-' ), isset( $args['code-file'] ) ? '' : php_source( $args['code'] ?? '' ), array(), WORKLOAD_OUTPUT_BYTES ),
		'wordpress.wp-cli' => process( array( 'wp', ...wp_cli_words( $args['command'] ?? '' ) ), '', array(), WORKLOAD_OUTPUT_BYTES ),
		default => process(
			array( 'php', dirname( __DIR__ ) . '/' . substr( $command, strlen( 'wordpress.' ) ) . '.php' ),
			(string) json_encode(
				array(
					'command' => $command,
					'args'    => (object) $args,
					'mounts'  => $mounts,
					'site'    => array( 'url' => Entry::$call['url'] ),
				)
			),
			array(),
			DOCUMENT_BYTES
		),
	};
	$text = trim( $ended['stdout'] );
	$json = str_starts_with( $text, '{' ) || str_starts_with( $text, '[' ) ? json_decode( $text, true ) : null;
	$row  = array(
		'command'  => $command,
		'status'   => 0 === $ended['exitCode'] ? 'ok' : 'error',
		'exitCode' => $ended['exitCode'],
	);
	$row += null === $json ? array( 'output' => $ended['stdout'] ) : array( 'result' => $json );
	if ( 0 !== $ended['exitCode'] ) {
		$row['message'] = is_array( $json ) && is_string( $json['error']['message'] ?? null ) ? cut( $json['error']['message'], 500 ) : cut( 'it exited with ' . $ended['exitCode'] . ': ' . trim( (string) strrchr( "\n" . trim( $ended['stderr'] ), "\n" ) ), 500 );
	}
	return $row;
}

/**
 * Returns a document that a workload wrote.
 *
 * @param Arguments $arguments Guest command arguments with `artifact` and `schema`.
 * @return array<string,mixed> `wp-codebox/typed-workload-artifact/v1`.
 */
function workload_result( Arguments $arguments ): array {
	$path = $arguments->first( 'artifact' );
	$path = '' === $path ? 'workload-result.json' : $path;
	$path = str_starts_with( $path, '/' ) ? $path : ARTIFACTS . '/' . $path;
	$size = is_file( root() . $path ) ? (int) filesize( root() . $path ) : -1;
	if ( $size < 0 || ! is_readable( root() . $path ) ) {
		throw new Refusal( 'artifact-missing', sprintf( 'there is no file %s in the guest', Arguments::shown( $path ) ) );
	}
	if ( $size > WORKLOAD_BYTES ) {
		throw new Refusal( 'artifact-too-large', sprintf( '%s has %d bytes; at most %d are allowed', $path, $size, WORKLOAD_BYTES ) );
	}
	$bytes   = (string) file_get_contents( root() . $path );
	$payload = json_decode( $bytes, true, 128 );
	if ( null === $payload && 'null' !== trim( $bytes ) ) {
		throw new Refusal( 'artifact-invalid', sprintf( '%s is not JSON: %s', $path, json_last_error_msg() ) );
	}
	$named = is_array( $payload ) && is_string( $payload['schema'] ?? null ) ? $payload['schema'] : null;
	if ( '' !== $arguments->first( 'schema' ) && $arguments->first( 'schema' ) !== $named ) {
		throw new Refusal( 'artifact-schema', sprintf( '%s names the schema %s, not %s', $path, Arguments::shown( $named ), Arguments::shown( $arguments->first( 'schema' ) ) ) );
	}
	write_artifact( basename( $path ), $bytes, 'workload-result' );
	return array(
		'schema'        => 'wp-codebox/typed-workload-artifact/v1',
		'status'        => 'ok',
		'name'          => basename( $path ),
		'path'          => $path,
		'payloadSchema' => $named,
		'bytes'         => strlen( $bytes ),
		'sha256'        => hash( 'sha256', $bytes ),
		'payload'       => json_decode( $bytes, false, 128 ),
	);
}
