<?php
/**
 * Authority of a call: operator or user.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Decides which host directories a caller may mount or apply to.
 */
enum Authority {

	/** WP-CLI without `--user`: the person with shell access. May use any directory that is not on the deny list. */
	case Operator;

	/** An ability, or WP-CLI with `--user`. May use installed plugins and themes, and the configured mount roots. */
	case User;
}
