<?php
/**
 * Passes tasks to a plugin of this site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\HostPlugin;

use Throwable;
use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Asks the filter `wp_codebox_host_delegation_request`. Without a plugin that answers it, the status is `unavailable`. The
 * plugin's answer must belong to this request, this session and this source.
 */
final class HostDelegation {

	public const EVENT = 'host-delegation';

	private const SCHEMA   = 'wp-codebox/host-delegation-result/v1';
	private const STATUSES = [ 'unavailable', 'accepted', 'completed', 'failed' ];
	private const TEXTS    = [ 'request_id', 'task', 'goal', 'sandbox_session_id', 'source_digest', 'allowed_tools', 'expected_artifacts' ];

	/** Members of the plugin's answer that are passed on, with the type of each. */
	private const MEMBERS = [
		'provider'  => 'text',
		'result'    => 'object',
		'error'     => 'object',
		'events'    => 'list',
		'artifacts' => 'object',
		'timings'   => 'object',
	];

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate  Check that the PHP extension is loaded and its version fits.
	 * @param AuditTrail    $audit Audit log that records each decision.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Passes one task to the plugin and records it in the audit log.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/host-delegation-result/v1`.
	 * @throws Failure When the request or the plugin's answer is invalid.
	 */
	public function request( array $input ): array {
		$this->gate->check();
		$request = $this->normalised( $input );
		$record  = array_intersect_key( $request, array_flip( [ 'request_id', 'sandbox_session_id', 'source_digest' ] ) );
		try {
			$answer = $this->ask( $request );
			$result = null === $answer ? $this->unavailable( $request ) : $this->checked( $answer, $request );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( self::EVENT, $record, $thrown );
		}
		$this->audit->write( self::EVENT, $record + [ 'status' => $result['success'] ? 'success' : 'failure' ] + [ 'delegation_status' => $result['status'] ] );
		return $result;
	}

	/**
	 * Returns the request as the plugin gets it: with an id, `goal` instead of `task`, and one form of the digest.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/host-delegation-request/v1`.
	 */
	private function normalised( array $input ): array {
		HostAnswer::bounded( $input, ErrorCode::HostDelegationRequestInvalid );
		$input = HostAnswer::trimmed( $input, self::TEXTS );
		$goal  = (string) ( $input['goal'] ?? '' );
		$goal  = '' !== $goal ? $goal : (string) ( $input['task'] ?? '' );
		if ( '' === $goal ) {
			throw Failure::because( ErrorCode::HostDelegationRequestInvalid, __( 'The request has neither "goal" nor "task"; say in one of them what the host is to do.', 'codebox' ), [], [ 'field' => 'goal' ] );
		}
		$id      = (string) ( $input['request_id'] ?? '' );
		$request = [
			'schema'     => 'wp-codebox/host-delegation-request/v1',
			'request_id' => '' !== $id ? $id : 'delegation-' . wp_generate_uuid4(),
			'goal'       => $goal,
			'task'       => $goal,
		];
		$digest  = $this->digest( $input['source_digest'] ?? '' );
		if ( '' !== $digest ) {
			$request['source_digest'] = $digest;
		}
		return $request + HostAnswer::filled( array_diff_key( $input, $request, [ 'source_digest' => 1 ] ) );
	}

	/**
	 * Returns the digest as 64 lower-case hex digits, or '' when none is given.
	 *
	 * @param mixed $given `source_digest` of the input.
	 */
	private function digest( mixed $given ): string {
		$value = is_array( $given ) ? (string) ( $given['value'] ?? '' ) : (string) $given;
		$value = strtolower( trim( $value ) );
		if ( '' !== $value && 1 !== preg_match( '/^[0-9a-f]{64}$/D', $value ) ) {
			throw Failure::because( ErrorCode::HostDelegationSourceDigestInvalid, __( '"source_digest" is not a SHA-256; give 64 hex digits.', 'codebox' ), [], [ 'field' => 'source_digest' ] );
		}
		return $value;
	}

	/**
	 * Calls the plugin.
	 *
	 * @param array<string, mixed> $request `wp-codebox/host-delegation-request/v1`.
	 */
	private function ask( array $request ): mixed {
		return HostAnswer::of(
			/**
			 * Takes over a task that a caller delegates to the host. The user has the capability to run tasks; the plugin
			 * decides whether the user may do more.
			 *
			 * @param array<string, mixed>|\WP_Error|null $result  Answer of an earlier plugin: return it unchanged when it is
			 *   not null. An answer has `status`: `accepted`, `completed`, `failed` or `unavailable`; it may have
			 *   `provider`, `result`, `error`, `events`, `artifacts`, `timings`, and must repeat `request_id`, `session_id`
			 *   and `source_digest` unchanged when it has them.
			 * @param array<string, mixed>                $request Request, `wp-codebox/host-delegation-request/v1`.
			 */
			static fn(): mixed => apply_filters( 'wp_codebox_host_delegation_request', null, $request ),
			ErrorCode::HostDelegationProviderResultInvalid,
			__( 'The plugin that takes host delegations threw an exception; the PHP error log says where.', 'codebox' )
		);
	}

	/**
	 * Returns the answer when no plugin takes the request.
	 *
	 * @param array<string, mixed> $request `wp-codebox/host-delegation-request/v1`.
	 * @return array<string, mixed>
	 */
	private function unavailable( array $request ): array {
		$failure = Failure::because(
			ErrorCode::HostDelegationUnavailable,
			__( 'No plugin of this site takes host delegations (tasks that a sandbox hands to its host), so nothing was done.', 'codebox' ),
			[ __( 'Install a plugin that answers the filter wp_codebox_host_delegation_request.', 'codebox' ) ]
		);
		return $this->envelope( $request, 'unavailable', [ 'error' => $failure->to_array() ] );
	}

	/**
	 * Checks the plugin's answer and returns it to the caller.
	 *
	 * @param mixed                $answer  Value that the filter returned; not null.
	 * @param array<string, mixed> $request `wp-codebox/host-delegation-request/v1`.
	 * @return array<string, mixed>
	 */
	private function checked( mixed $answer, array $request ): array {
		if ( is_wp_error( $answer ) ) {
			$failure = HostAnswer::refusal( $answer, ErrorCode::HostDelegationProviderResultInvalid );
			return $this->envelope( $request, 'failed', [ 'error' => $failure->to_array() ] );
		}
		$answer = HostAnswer::document( $answer, ErrorCode::HostDelegationProviderResultInvalid, ErrorCode::HostDelegationProviderResultInvalid );
		if ( isset( $answer['schema'] ) && self::SCHEMA !== $answer['schema'] ) {
			/* translators: %s: name of a schema. */
			throw Failure::because( ErrorCode::HostDelegationProviderResultInvalid, Sentence::of( __( 'The plugin that takes host delegations answered with another schema than %s.', 'codebox' ), self::SCHEMA ) );
		}
		$status = $answer['status'] ?? null;
		if ( ! in_array( $status, self::STATUSES, true ) ) {
			/* translators: %s: list of values. */
			throw Failure::because( ErrorCode::HostDelegationProviderStatusInvalid, Sentence::of( __( 'The plugin that takes host delegations answered with an unknown status; it must be one of %s.', 'codebox' ), implode( ', ', self::STATUSES ) ) );
		}
		$this->belongs( $answer, $request );
		return $this->envelope( $request, $status, $this->members( $answer ) );
	}

	/**
	 * Checks that the answer repeats id, session and digest of the request.
	 *
	 * @param array<string, mixed> $answer  Answer of the plugin.
	 * @param array<string, mixed> $request `wp-codebox/host-delegation-request/v1`.
	 * @throws Failure When the answer belongs to another request.
	 */
	private function belongs( array $answer, array $request ): void {
		if ( null !== HostAnswer::foreign( $answer, [ 'request_id' ], $request['request_id'] ) ) {
			throw Failure::because( ErrorCode::HostDelegationRequestIdMismatch, __( 'The plugin that takes host delegations answered with a "request_id" that is not the one of the request.', 'codebox' ) );
		}
		if ( null !== HostAnswer::foreign( $answer, [ 'session_id', 'sandbox_session_id' ], (string) ( $request['sandbox_session_id'] ?? '' ) ) ) {
			throw Failure::because( ErrorCode::HostDelegationScopeMismatch, __( 'The plugin that takes host delegations answered with a session id that is not the one of the request.', 'codebox' ) );
		}
		$digest = is_array( $answer['source_digest'] ?? null ) ? $answer['source_digest']['value'] ?? null : $answer['source_digest'] ?? null;
		if ( null !== $digest && ( ! is_string( $digest ) || strtolower( $digest ) !== ( $request['source_digest'] ?? '' ) ) ) {
			throw Failure::because( ErrorCode::HostDelegationSourceDigestMismatch, __( 'The plugin that takes host delegations answered with a "source_digest" that is not the one of the request.', 'codebox' ) );
		}
	}

	/**
	 * Returns the members of the answer that have the right type.
	 *
	 * @param array<string, mixed> $answer Answer of the plugin.
	 * @return array<string, mixed>
	 * @throws Failure For a member of another type.
	 */
	private function members( array $answer ): array {
		$members = [];
		foreach ( self::MEMBERS as $name => $type ) {
			$value = $answer[ $name ] ?? null;
			$fits  = match ( $type ) {
				'text'  => is_string( $value ),
				'list'  => is_array( $value ) && array_is_list( $value ) && $value === array_filter( $value, static fn( mixed $row ): bool => is_object( $row ) || is_array( $row ) ),
				default => is_object( $value ) || is_array( $value ) && ( [] === $value || ! array_is_list( $value ) ),
			};
			if ( null !== $value && ! $fits ) {
				/* translators: %s: name of a field. */
				throw Failure::because( ErrorCode::HostDelegationProviderResultInvalid, Sentence::of( __( 'The plugin that takes host delegations answered with a value of the wrong type in the field "%s".', 'codebox' ), $name ) );
			}
			$members[ $name ] = $value;
		}
		if ( isset( $members['error'] ) ) {
			$error            = (array) $members['error'];
			$members['error'] = [
				'code'    => is_string( $error['code'] ?? null ) ? $error['code'] : ErrorCode::HostDelegationProviderResultInvalid->value,
				'message' => is_string( $error['message'] ?? null ) ? $error['message'] : __( 'The plugin that takes host delegations reported an error without a message.', 'codebox' ),
			] + ( is_array( $error['data'] ?? null ) && [] !== $error['data'] ? [ 'data' => $error['data'] ] : [] );
		}
		return HostAnswer::filled( $members );
	}

	/**
	 * Builds the answer to the caller.
	 *
	 * @param array<string, mixed> $request `wp-codebox/host-delegation-request/v1`.
	 * @param string               $status  Status.
	 * @param array<string, mixed> $members Members of the plugin's answer.
	 * @return array<string, mixed>
	 */
	private function envelope( array $request, string $status, array $members ): array {
		$answer = [
			'success'    => in_array( $status, [ 'accepted', 'completed' ], true ),
			'schema'     => self::SCHEMA,
			'execution'  => 'host-delegation',
			'status'     => $status,
			'request_id' => $request['request_id'],
			'request'    => $request,
			'events'     => $members['events'] ?? [],
		];
		$echoed = [ 'session_id' => $request['sandbox_session_id'] ?? '' ] + array_intersect_key( $request, array_flip( [ 'source_digest', 'orchestrator', 'metadata' ] ) );
		return $answer + HostAnswer::filled( $echoed ) + $members;
	}
}
