<?php
/**
 * What is known of a credential.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * The words of the credential contracts. Only the first and the last let anything start.
 */
enum CredentialStatus: string {

	/** There is a value, and it may be used. */
	case Available = 'available';

	/** There is no value. */
	case Missing = 'missing';

	/** Whether or not there is a value: it must not be used here. */
	case Denied = 'denied';

	/** None is needed. */
	case NotRequired = 'not-required';

	/** Whether work that needs it may start. */
	public function usable(): bool {
		return self::Available === $this || self::NotRequired === $this;
	}

	/**
	 * What a host plugin answered; anything that is no word of ours denies.
	 *
	 * @param mixed $word As answered.
	 */
	public static function read( mixed $word ): self {
		return is_string( $word ) ? self::tryFrom( $word ) ?? self::Denied : self::Denied;
	}
}
