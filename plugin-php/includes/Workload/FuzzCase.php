<?php
/**
 * One case of a fuzz suite.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Converts target and input of a case to a command of the sandbox. */
final class FuzzCase {

	private const METHOD = '/^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s+(\S.*)$/D';

	/**
	 * Creates a case.
	 *
	 * @param string                                              $id    Id.
	 * @param array{command: string, args: list<string>}|null     $call  Command; null when none calls the target.
	 * @param array<string, mixed>                                $given Members that the answer repeats.
	 * @param string                                              $kind  Kind of the target.
	 */
	private function __construct(
		public readonly string $id,
		public readonly ?array $call,
		private readonly array $given,
		private readonly string $kind
	) {}

	/**
	 * Reads a case.
	 *
	 * @param array<string, mixed> $row   Row of the suite.
	 * @param array<string, mixed> $suite Target of the suite, for cases without one.
	 */
	public static function read( array $row, array $suite ): self {
		$own    = (array) ( $row['target'] ?? [] );
		$target = HostAnswer::trimmed( [] === $own ? $suite : $own + array_intersect_key( $suite, [ 'kind' => 1 ] ), [ 'id', 'entrypoint' ] );
		$kind   = (string) ( $target['kind'] ?? '' );
		$name   = (string) ( $target['id'] ?? '' );
		$name   = '' !== $name ? $name : (string) ( $target['entrypoint'] ?? '' );
		$call   = '' === $name ? null : self::call( $kind, $name, $row['input'] ?? [] );
		$given  = HostAnswer::filled(
			[
				'target'      => $target,
				'description' => (string) ( $row['description'] ?? '' ),
				'metadata'    => (array) ( $row['metadata'] ?? [] ),
			]
		);
		return new self( trim( (string) ( $row['id'] ?? '' ) ), $call, $given, $kind );
	}

	/**
	 * Returns the row of the case in the answer.
	 *
	 * @param string               $status  Status.
	 * @param array<string, mixed> $members Further members.
	 * @return array<string, mixed>
	 */
	public function row( string $status, array $members = [] ): array {
		return [
			'id'     => $this->id,
			'status' => $status,
		] + HostAnswer::filled( $members ) + $this->given;
	}

	/**
	 * Returns the row of the case after its command ran. For a request, HTTP status 500 and above is a failure; a request
	 * that the site refuses (4xx) is not.
	 *
	 * @param array<string, mixed> $step Row of the step.
	 * @return array<string, mixed>
	 */
	public function of_step( array $step ): array {
		$response = $step['result']['status'] ?? null;
		$crashed  = in_array( $this->kind, [ 'rest', 'http' ], true ) && is_int( $response ) && $response >= 500;
		$status   = match ( $step['status'] ) {
			'completed' => $crashed ? 'failed' : 'passed',
			'failed' => 'failed',
			'timed_out' => 'error',
			default => $step['status'],
		};
		$result = HostAnswer::filled(
			[
				'command' => $step['command'],
				'result'  => $step['result'] ?? null,
				'stdout'  => isset( $step['result'] ) ? '' : (string) ( $step['stdout'] ?? '' ),
				'stderr'  => (string) ( $step['stderr'] ?? '' ),
			]
		);
		return $this->row(
			$status,
			[
				'result' => $result,
				'error'  => $step['error'] ?? [],
			]
		) + ( isset( $step['durationMs'] ) ? [ 'duration_ms' => $step['durationMs'] ] : [] );
	}

	/**
	 * Returns the error of a case whose target no command of the sandbox can call.
	 *
	 * @return array<string, mixed>
	 */
	public function unsupported(): array {
		/* translators: %s: kind of a target. */
		return Failure::because( ErrorCode::FuzzStepUnsupported, Sentence::of( __( 'No command of the sandbox calls this target of the kind "%s"; a target needs an id and the kind rest, http, ability or command.', 'codebox' ), $this->kind ) )->to_array();
	}

	/**
	 * Returns the command that calls a target; null when there is none.
	 *
	 * @param string $kind  Kind of the target.
	 * @param string $name  Name of the target.
	 * @param mixed  $input Input of the case.
	 * @return array{command: string, args: list<string>}|null
	 */
	private static function call( string $kind, string $name, mixed $input ): ?array {
		return match ( $kind ) {
			'rest' => self::request( 'wordpress.rest-request', 'path', $name, (array) $input ),
			'http' => self::request( 'wordpress.http-request', 'url', $name, (array) $input ),
			'ability' => [
				'command' => 'wordpress.ability',
				'args'    => [ 'name=' . $name, ...( in_array( $input, [ null, [] ], true ) ? [] : [ 'input=' . self::json( $input ) ] ) ],
			],
			'command' => [
				'command' => $name,
				'args'    => self::arguments( $input ),
			],
			default => null,
		};
	}

	/**
	 * Returns the command of a request.
	 *
	 * @param string               $command Command.
	 * @param string               $place   Argument with the address.
	 * @param string               $name    Address, or method and address.
	 * @param array<string, mixed> $input   Input of the case: method, headers, params or query, body.
	 * @return array{command: string, args: list<string>}
	 */
	private static function request( string $command, string $place, string $name, array $input ): array {
		$method = is_string( $input['method'] ?? null ) ? strtoupper( $input['method'] ) : '';
		if ( 1 === preg_match( self::METHOD, $name, $found ) ) {
			[ , $verb, $name ] = $found;
			$method            = '' === $method ? $verb : $method;
		}
		$params = $input['params'] ?? $input['query'] ?? null;
		$args   = [ $place . '=' . $name ];
		foreach ( [
			'method'       => $method,
			'headers-json' => empty( $input['headers'] ) ? '' : self::json( $input['headers'] ),
			'params-json'  => 'path' === $place && ! empty( $params ) ? self::json( $params ) : '',
			'body-json'    => 'path' === $place && isset( $input['body'] ) && ! is_string( $input['body'] ) ? self::json( $input['body'] ) : '',
			'body'         => isset( $input['body'] ) ? ( is_string( $input['body'] ) ? $input['body'] : ( 'url' === $place ? self::json( $input['body'] ) : '' ) ) : '',
		] as $argument => $value ) {
			if ( '' !== $value ) {
				$args[] = $argument . '=' . $value;
			}
		}
		return [
			'command' => $command,
			'args'    => $args,
		];
	}

	/**
	 * Returns the input of a case as arguments of a command.
	 *
	 * @param mixed $input A list of `name=value`, an object with `args`, or values by name.
	 * @return list<string>
	 */
	private static function arguments( mixed $input ): array {
		$input = is_array( $input ) ? $input['args'] ?? $input : (array) $input;
		$args  = [];
		foreach ( (array) $input as $name => $value ) {
			$text   = is_bool( $value ) ? ( $value ? 'true' : 'false' ) : ( is_scalar( $value ) ? (string) $value : self::json( $value ) );
			$args[] = is_int( $name ) ? $text : $name . '=' . $text;
		}
		return $args;
	}

	/**
	 * Returns a value as JSON.
	 *
	 * @param mixed $value Value.
	 */
	private static function json( mixed $value ): string {
		return (string) wp_json_encode( $value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE );
	}
}
