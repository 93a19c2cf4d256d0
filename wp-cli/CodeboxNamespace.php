<?php
/**
 * The WP-CLI namespace `wp codebox`, which contains all commands of this plugin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_CLI\Dispatcher\CommandNamespace;

defined( 'ABSPATH' ) || exit;

/**
 * Runs coding agents in a disposable sandbox, and reviews and applies what they changed.
 *
 * ## EXAMPLES
 *
 *     # Let an agent work on a plugin; nothing on this site changes.
 *     $ wp codebox run-agent-task "Make the check pass" --plugin=sample --agent-command='php agent.php'
 *
 *     # Look at the change, then hand it to the plugin of this site that applies changes.
 *     $ wp codebox artifacts diff run_0123
 *     $ wp codebox artifacts apply run_0123 --all
 */
final class CodeboxNamespace extends CommandNamespace {}
