<?php
/**
 * Whether a caller was let in, and by what.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

defined( 'ABSPATH' ) || exit;

/**
 * One decision, fit for an answer and for the log.
 */
final class Authorization {

	/**
	 * Describes it.
	 *
	 * @param Scope  $scope      What was asked for.
	 * @param bool   $authorized Whether it is allowed.
	 * @param string $caller     Who asked, as it was found out: `user:<id>`, id of an application password, or ''.
	 * @param string $method     `capability`, `trusted-orchestrator` or `site-code`.
	 * @param string $reason     Why so, as a word.
	 * @param mixed  $claimed    What the input says of the caller; it decided nothing.
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
	 * The decision as data.
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
