<?php
/**
 * `wp codebox browser-assets`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Installs the runtime files of browser sandboxes.
 */
final class BrowserAssetsCommand extends Command {

	/**
	 * Installs the runtime files of browser sandboxes from the archive of this release.
	 *
	 * Each file is compared with the size and the hash in the plugin. Nothing is installed if one differs, is missing, or does not belong to
	 * this release.
	 *
	 * ## OPTIONS
	 *
	 * <file>
	 * : Path of codebox-browser.zip.
	 *
	 * [--format=<format>]
	 * : Output format of the files.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: name, bytes, sha256, status.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox browser-assets install codebox-browser.zip
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function install( array $args, array $flags ): void {
		$this->enter(
			'install',
			$flags,
			function () use ( $args, $flags ): int {
				$status = $this->services->browser_runtime->install( (string) ( $args[0] ?? '' ) );
				$this->console->say( sprintf( 'Installed in %s.', $status['directory'] ) );
				$this->rows( $status, $status['files'], [ 'name', 'bytes', 'status' ], 'name', $flags );
				return 0;
			}
		);
	}

	/**
	 * Shows which runtime files are installed. Reads every file and compares its hash.
	 *
	 * Exit status 1 when a file is missing or damaged.
	 *
	 * ## OPTIONS
	 *
	 * [--format=<format>]
	 * : Output format of the files.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: name, bytes, sha256, status.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox browser-assets status
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function status( array $args, array $flags ): void {
		$this->enter(
			'status',
			$flags,
			function () use ( $flags ): int {
				$status = $this->services->browser_runtime->status( true );
				$this->rows( $status, $status['files'], [ 'name', 'bytes', 'status' ], 'name', $flags );
				return $status['installed'] ? 0 : 1;
			}
		);
	}

	/**
	 * Removes the runtime files of every version.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox browser-assets remove
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function remove( array $args, array $flags ): void {
		$this->enter(
			'remove',
			$flags,
			function (): int {
				$this->services->browser_runtime->remove();
				$this->console->say( 'The runtime files of browser sandboxes are removed.' );
				return 0;
			}
		);
	}

	/**
	 * Runs a command body for users who may change the settings.
	 *
	 * @param string               $name  Name of the command.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @param callable(): int      $body  Body; returns the exit status.
	 * @throws Failure As the body does.
	 */
	private function enter( string $name, array $flags, callable $body ): void {
		$this->boundary->enter( 'codebox browser-assets ' . $name, Capabilities::SETTINGS, null, $flags, static fn( Authority $authority ): int => $body() );
	}
}
