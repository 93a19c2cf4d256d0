<?php
/**
 * How a check treats contents that a browser uploaded.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

defined( 'ABSPATH' ) || exit;

/** A preflight only reports the origin, so that a user can read the change before the confirmation. */
enum OriginRule {

	/** Without the confirmation of a user who may apply changes, the bundle is refused. */
	case Enforce;

	/** The payload says that the bundle needs a confirmation. */
	case Report;
}
