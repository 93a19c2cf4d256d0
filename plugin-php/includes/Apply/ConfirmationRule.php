<?php
/**
 * How a check treats a missing confirmation.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

defined( 'ABSPATH' ) || exit;

/**
 * Two kinds of changes need a confirmation of their own: contents that a browser uploaded, and files that programs run by
 * themselves. A preflight only reports them, so that a user can read the change before the confirmation.
 */
enum ConfirmationRule {

	/** Without the confirmation, the change is refused. */
	case Enforce;

	/** The payload says what needs a confirmation. */
	case Report;
}
