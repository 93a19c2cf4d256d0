<?php
/**
 * In whose name something is asked for.
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

	/** WP-CLI without `--user`: whoever holds the shell. Any directory that is not on the deny list. */
	case Operator;

	/** An ability, or WP-CLI as a user: installed plugins and themes, and the configured mount roots. */
	case User;
}
