<?php
/**
 * Authorization decision about a caller.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

defined( 'ABSPATH' ) || exit;

/**
 * States whether a caller may use a scope, and why, in a form for responses and for the audit log.
 */
final class Authorization {

	/**
	 * Creates a decision.
	 *
	 * @param Scope  $scope      Requested scope.
	 * @param bool   $authorized Whether the request is allowed.
	 * @param string $caller     Authenticated caller: `user:<id>`, id of an application password, or ''.
	 * @param string $method     `capability`, `trusted-orchestrator` or `site-code`.
	 * @param string $reason     Reason of the decision, e.g. `missing-scope`.
	 * @param mixed  $claimed    Caller as claimed by the input; not used for the decision.
	 */
	public function __construct(
		public readonly Scope $scope,
		public readonly bool $authorized,
		public readonly string $caller,
		public readonly string $method,
		public readonly string $reason,
		private readonly mixed $claimed = null
	) {}

	/**
	 * Returns the decision for responses and the audit log, with what the caller claimed to be.
	 *
	 * @return array<string, mixed> `wp-codebox/trusted-orchestrator-authorization/v1`.
	 */
	public function to_array(): array {
		$given   = is_array( $this->claimed ) ? $this->claimed : [];
		$claimed = [];
		foreach ( [ 'caller', 'scope' ] as $field ) {
			if ( is_string( $given[ $field ] ?? null ) ) {
				$claimed[ $field ] = mb_substr( sanitize_text_field( $given[ $field ] ), 0, 200 );
			}
		}
		$decision = [
			'schema'     => 'wp-codebox/trusted-orchestrator-authorization/v1',
			'caller'     => $this->caller,
			'scope'      => $this->scope->value,
			'authorized' => $this->authorized,
			'method'     => $this->method,
			'reason'     => $this->reason,
		];
		return [] === $claimed ? $decision : $decision + [ 'claimed' => $claimed ];
	}
}
