<?php
/**
 * Status of a credential.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Values of `status` in the credential schemas. A run or request starts only with `available` and `not-required`.
 */
enum CredentialStatus: string {

	/** A value exists and may be used. */
	case Available = 'available';

	/** No value exists. */
	case Missing = 'missing';

	/** The site forbids the use of the credential, whether or not a value exists. */
	case Denied = 'denied';

	/** No credential is needed. */
	case NotRequired = 'not-required';

	/** Checks whether a run or request that needs the credential may start. */
	public function usable(): bool {
		return self::Available === $this || self::NotRequired === $this;
	}

	/**
	 * Parses the status that a host plugin returned; an unknown value means denied.
	 *
	 * @param mixed $word Value that the plugin returned.
	 */
	public static function read( mixed $word ): self {
		return is_string( $word ) ? self::tryFrom( $word ) ?? self::Denied : self::Denied;
	}
}
