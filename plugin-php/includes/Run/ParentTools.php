<?php
/**
 * Tools that an agent in a sandbox may call and that this site, the parent site of the sandbox, executes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use Throwable;
use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Redactor;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * An agent in a sandbox may call abilities of its parent site that the task lists and the current user may
 * execute. Input from the sandbox is untrusted: list, permission and input are checked again at each call.
 * Abilities of Codebox itself are excluded: an agent can neither start runs nor review or apply its own work.
 */
final class ParentTools {

	public const BRIDGE = 'wp-codebox/parent-tool-bridge/v1';
	public const RESULT = 'wp-codebox/parent-tool-result/v1';

	/** Size limit of the response to one tool call, in bytes of JSON. */
	public const MOST_BYTES = 65536;

	/** Maximum number of parent tools that one task may list. */
	private const MOST_TOOLS = 32;

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param AuditTrail $audit Audit log that records each decision.
	 */
	public function __construct( private readonly AuditTrail $audit ) {}

	/**
	 * Returns the parent tools of a task in the form of the run request; null when the task lists none.
	 *
	 * @param array<string, mixed> $input Task input with `parent_tool_bridge`.
	 * @return array<string, mixed>|null
	 * @throws Failure `wp_codebox_input_invalid` or `wp_codebox_tool_not_allowed`.
	 */
	public function listed( array $input ): ?array {
		$bridge = (array) ( $input['parent_tool_bridge'] ?? [] );
		if ( [] === $bridge ) {
			return null;
		}
		$dispatcher = (array) ( $bridge['dispatcher'] ?? [] );
		if ( ! in_array( $dispatcher['mode'] ?? 'ability', [ 'ability' ], true ) || isset( $dispatcher['command'] ) || isset( $dispatcher['endpoint'] ) ) {
			throw Failure::invalid_input( __( '"parent_tool_bridge.dispatcher" must have the mode "ability" and no "command" or "endpoint": parent tools are abilities of this site, listed in "parent_tool_bridge.allowed_tools".', 'codebox' ) );
		}
		$names = array_values( array_unique( array_filter( (array) ( $bridge['allowed_tools'] ?? [] ), 'is_string' ) ) );
		if ( [] === $names || count( $names ) > self::MOST_TOOLS ) {
			/* translators: %d: number of abilities. */
			throw Failure::invalid_input( Sentence::of( __( '"parent_tool_bridge.allowed_tools" must list from 1 to %d abilities of this site.', 'codebox' ), self::MOST_TOOLS ) );
		}
		$tools = array_map( fn( string $name ): array => $this->tool( $name, $input ), $names );
		$limit = $bridge['timeout_ms'] ?? $dispatcher['timeout_ms'] ?? null;
		return [ 'tools' => $tools ] + ( is_int( $limit ) ? [ 'timeout_ms' => $limit ] : [] );
	}

	/**
	 * Returns the callback that `Run::wait()` calls for each tool call from the sandbox.
	 *
	 * @param list<string>         $ids   Ids of the listed tools.
	 * @param array<string, mixed> $input Task input.
	 * @return callable(array): array
	 */
	public function handler( array $ids, array $input ): callable {
		return function ( array $request ) use ( $ids, $input ): array {
			$id     = is_string( $request['tool'] ?? null ) ? $request['tool'] : '';
			$name   = self::ability( $id );
			$answer = in_array( $id, $ids, true ) ? $this->answer( $name, (array) ( $request['input'] ?? [] ), $input ) : $this->refused( 'denied', ErrorCode::ToolNotAllowed->value, 'The task does not list this tool.' );
			try {
				$this->audit->write(
					'parent-tool',
					array_filter(
						[
							'tool'    => substr( $id, 0, 200 ),
							'request' => substr( is_string( $request['request_id'] ?? null ) ? $request['request_id'] : '', 0, 100 ),
							'status'  => 'succeeded' === $answer['status'] ? 'success' : 'failure',
							'error'   => $answer['error'] ?? null,
						]
					)
				);
			} catch ( Failure $failure ) {
				// A result that the audit log could not record is not given to the agent.
				$answer = $this->refused( 'failed', $failure->error_code, $failure->getMessage() );
			}
			return [
				'schema'     => self::RESULT,
				'version'    => 1,
				'request_id' => $request['request_id'] ?? '',
				'tool'       => $id,
				'operation'  => is_string( $request['operation'] ?? null ) ? $request['operation'] : 'call',
			] + $answer;
		};
	}

	/**
	 * Returns the tool id of an ability. Ability names have no dots.
	 *
	 * @param string $name Name of the ability.
	 */
	public static function id( string $name ): string {
		return str_replace( '/', '.', $name );
	}

	/**
	 * Returns the name of the ability that a tool id stands for.
	 *
	 * @param string $id Tool id.
	 */
	private static function ability( string $id ): string {
		return str_replace( '.', '/', $id );
	}

	/**
	 * Builds the description of one tool for the agent: id, text and input schema.
	 *
	 * @param string               $name  Name of the ability.
	 * @param array<string, mixed> $input Task input.
	 * @return array{id: string, description: string, input_schema: array<string, mixed>}
	 */
	private function tool( string $name, array $input ): array {
		$ability = str_starts_with( $name, 'wp-codebox/' ) || ! wp_has_ability( $name ) ? null : wp_get_ability( $name );
		if ( null === $ability ) {
			/* translators: %s: name of an ability. */
			throw Failure::because( ErrorCode::ToolNotAllowed, Sentence::of( __( 'The parent tool "%s" is not an ability that this site makes available to an agent.', 'codebox' ), substr( sanitize_text_field( $name ), 0, 100 ) ), [ __( 'List abilities of other plugins, by their full names; an agent never gets those of Codebox itself.', 'codebox' ) ] );
		}
		if ( ! $this->lent( $name, $input ) ) {
			/* translators: %s: name of an ability. */
			throw Failure::because( ErrorCode::ToolNotAllowed, Sentence::of( __( 'The filter wp_codebox_can_call_parent_tool of this site does not let an agent of this user call the ability %s; leave it out of "parent_tool_bridge.allowed_tools".', 'codebox' ), $name ) );
		}
		$schema = self::without_empty( $ability->get_input_schema() );
		return [
			'id'           => self::id( $name ),
			'description'  => substr( trim( $ability->get_label() . '. ' . $ability->get_description() ), 0, 1000 ),
			'input_schema' => 'object' === ( $schema['type'] ?? '' ) ? $schema : [ 'type' => 'object' ],
		];
	}

	/**
	 * Removes empty arrays from a JSON schema, because PHP cannot tell an empty list from an empty object.
	 *
	 * @param array<mixed> $schema JSON schema.
	 * @return array<mixed>
	 */
	private static function without_empty( array $schema ): array {
		$kept = array_map( static fn( mixed $member ): mixed => is_array( $member ) ? self::without_empty( $member ) : $member, $schema );
		return array_filter( $kept, static fn( mixed $member ): bool => [] !== $member );
	}

	/**
	 * Checks whether the site's filter lets an agent call the ability.
	 *
	 * @param string               $name  Name of the ability.
	 * @param array<string, mixed> $input Task input.
	 */
	private function lent( string $name, array $input ): bool {
		/**
		 * Filters whether an agent may call an ability of this site, when a task lists it and again at each
		 * call. The filter can only restrict: the ability's own permission check applies too, and any value
		 * but `true` refuses.
		 *
		 * @param bool                 $allowed Always true.
		 * @param string               $name    Name of the ability.
		 * @param int                  $user_id User id of the task's owner; 0 for the operator.
		 * @param array<string, mixed> $input   Task input.
		 */
		return true === apply_filters( 'wp_codebox_can_call_parent_tool', true, $name, get_current_user_id(), $input );
	}

	/**
	 * Executes one call of a listed tool.
	 *
	 * @param string               $name  Name of the ability.
	 * @param array<string, mixed> $given Ability input, written by the sandbox.
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 */
	private function answer( string $name, array $given, array $input ): array {
		$ability = wp_has_ability( $name ) ? wp_get_ability( $name ) : null;
		if ( null === $ability || str_starts_with( $name, 'wp-codebox/' ) ) {
			return $this->refused( 'unavailable', ErrorCode::ToolNotAllowed->value, 'This site has no such ability any more.' );
		}
		if ( ! $this->lent( $name, $input ) ) {
			return $this->refused( 'denied', ErrorCode::ToolNotAllowed->value, 'This site does not make this ability available to an agent of this user.' );
		}
		try {
			// Validates the input and checks the permission as the current user.
			$output = $ability->execute( [] === $ability->get_input_schema() ? null : $given );
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			return $this->refused( 'failed', $failure->error_code, $failure->getMessage() );
		}
		if ( is_wp_error( $output ) ) {
			$code = (string) $output->get_error_code();
			if ( 'ability_callback_exception' === $code ) {
				// Since WordPress 7.1, WordPress catches the exception and its error quotes text meant for a
				// log.
				return $this->refused( 'failed', ErrorCode::Internal->value, 'The ability threw an exception; its text is not passed on.' );
			}
			return $this->refused( 'ability_invalid_permissions' === $code ? 'denied' : 'failed', $code, $output->get_error_message() );
		}
		$text = wp_json_encode( $output );
		if ( false === $text || strlen( $text ) > self::MOST_BYTES ) {
			return $this->refused( 'failed', ErrorCode::InputInvalid->value, sprintf( 'The answer of the ability is larger than %d bytes; ask for less.', self::MOST_BYTES ) );
		}
		$clean = json_decode( Redactor::text( $text ), true );
		if ( null === $clean && null !== $output ) {
			return $this->refused( 'failed', ErrorCode::Internal->value, 'The answer of the ability could not be cleaned of secrets.' );
		}
		return [
			'status' => 'succeeded',
			'output' => $clean,
		];
	}

	/**
	 * Builds the response to a call that is refused or fails. Its message is in English, for the agent and the audit log.
	 *
	 * @param string $status  `denied`, `failed` or `unavailable`.
	 * @param string $code    Stable error code.
	 * @param string $message Message for the agent.
	 * @return array<string, mixed>
	 */
	private function refused( string $status, string $code, string $message ): array {
		return [
			'status' => $status,
			'error'  => [
				'code'      => substr( $code, 0, 100 ),
				'message'   => mb_substr( Redactor::text( Sentence::english( $message ) ), 0, 1000 ),
				'retryable' => false,
			],
		];
	}
}
