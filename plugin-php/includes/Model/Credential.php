<?php
/**
 * Secret that is passed to a run.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use SensitiveParameterValue;

defined( 'ABSPATH' ) || exit;

/**
 * Name, status and source may be shown and stored. The value is in PHP's SensitiveParameterValue, which
 * dumps, exports, serialization and stack traces do not reveal; only `value()` does.
 */
final class Credential {

	/** Wrapped secret value; null unless it is available. */
	private readonly ?SensitiveParameterValue $sealed;

	/**
	 * Creates a credential.
	 *
	 * @param string           $name   Environment name, `[A-Z_][A-Z0-9_]*`.
	 * @param CredentialStatus $status Status of the credential.
	 * @param string           $source Source: `env`, `constant`, `database`, `secret_env`, `hook`, or ''.
	 * @param string|null      $value  Secret value; dropped unless the status is available.
	 */
	public function __construct(
		public readonly string $name,
		public readonly CredentialStatus $status,
		public readonly string $source,
		#[\SensitiveParameter] ?string $value = null
	) {
		$this->sealed = null === $value || '' === $value || CredentialStatus::Available !== $status ? null : new SensitiveParameterValue( $value );
	}

	/** Returns the secret value; null without one. Only the secrets of a run request may contain it. */
	public function value(): ?string {
		return null === $this->sealed ? null : (string) $this->sealed->getValue();
	}

	/**
	 * Returns the same credential with another status; any status but `available` drops the value.
	 *
	 * @param CredentialStatus $status Status of the copy.
	 */
	public function as( CredentialStatus $status ): self {
		return new self( $this->name, $status, $this->source, $this->value() );
	}

	/**
	 * Returns the credential for responses, logs and bundles: name, status and source without the value.
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
	 * Checks whether the caller may use a credential: every user who may run tasks may, unless the site's
	 * filter denies.
	 *
	 * @param string               $kind  `connector` or `provider`.
	 * @param string               $name  Id of the connector or provider.
	 * @param array<string, mixed> $input Ability input.
	 */
	public static function permitted( string $kind, string $name, array $input ): bool {
		/**
		 * Filters whether a caller may use a credential of this site. The filter can only restrict: the
		 * ability's permission check happened before, and any value but `true` denies.
		 *
		 * @param bool                 $allowed Always true.
		 * @param string               $kind    `connector` or `provider`.
		 * @param string               $name    Id of the connector or provider.
		 * @param int                  $user_id User id of the caller; 0 for the operator.
		 * @param array<string, mixed> $input   Ability input.
		 */
		return true === apply_filters( 'wp_codebox_can_use_credentials', true, $kind, $name, get_current_user_id(), $input );
	}
}
