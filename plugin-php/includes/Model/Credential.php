<?php
/**
 * One secret on its way to a run.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use SensitiveParameterValue;

defined( 'ABSPATH' ) || exit;

/**
 * Name, status and source may be shown and stored. The value sits in core PHP's own wrapper,
 * which no dump, export, serialization or stack trace opens; only `value()` does.
 */
final class Credential {

	/** The value, if there is one that may be used. */
	private readonly ?SensitiveParameterValue $sealed;

	/**
	 * Describes one.
	 *
	 * @param string           $name   Environment name, `[A-Z_][A-Z0-9_]*`.
	 * @param CredentialStatus $status Status.
	 * @param string           $source Where it is from: `env`, `constant`, `database`, `secret_env`, `hook`, or ''.
	 * @param string|null      $value  The value; dropped unless the status is available.
	 */
	public function __construct(
		public readonly string $name,
		public readonly CredentialStatus $status,
		public readonly string $source,
		#[\SensitiveParameter] ?string $value = null
	) {
		$this->sealed = null === $value || '' === $value || CredentialStatus::Available !== $status ? null : new SensitiveParameterValue( $value );
	}

	/** The value; null without one. Goes to the secrets of a request and to nothing else. */
	public function value(): ?string {
		return null === $this->sealed ? null : (string) $this->sealed->getValue();
	}

	/**
	 * The same secret, refused.
	 *
	 * @param CredentialStatus $status Why it cannot be used.
	 */
	public function as( CredentialStatus $status ): self {
		return new self( $this->name, $status, $this->source, $this->value() );
	}

	/**
	 * What may be shown.
	 *
	 * @return array{name: string, status: string, scope: string, source: string}
	 */
	public function row(): array {
		return [
			'name'   => $this->name,
			'status' => $this->status->value,
			'scope'  => 'connector',
			'source' => $this->source,
		];
	}

	/**
	 * Whether the caller may use a credential: who may run a task may, unless the site says otherwise.
	 *
	 * @param string               $kind  `connector` or `provider`.
	 * @param string               $name  Id of the connector or provider.
	 * @param array<string, mixed> $input Ability input.
	 */
	public static function permitted( string $kind, string $name, array $input ): bool {
		/**
		 * Filters whether a caller may use a credential of this site. It can only narrow: the
		 * permission of the ability was checked before, and anything but `true` denies.
		 *
		 * @param bool                 $allowed Always true.
		 * @param string               $kind    `connector` or `provider`.
		 * @param string               $name    Id of the connector or provider.
		 * @param int                  $user_id Who asks; 0 for the operator.
		 * @param array<string, mixed> $input   Ability input.
		 */
		return true === apply_filters( 'wp_codebox_can_use_credentials', true, $kind, $name, get_current_user_id(), $input );
	}
}
