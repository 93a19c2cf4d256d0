<?php
/**
 * `wp codebox doctor`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use Throwable;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Extension;

defined( 'ABSPATH' ) || exit;

/**
 * Checks whether this host can run sandboxes, and prints a fix for each failed check.
 */
final class DoctorCommand extends Command {

	/**
	 * Checks whether this host can run sandboxes, and prints a fix for each failed check.
	 *
	 * The command starts a guest that probes its own isolation: one row per axis (files, processes, network,
	 * syscalls, privileges, memory, cpu, pids, disk) reports what the probe found. Exit status 1 when a check
	 * failed.
	 *
	 * ## OPTIONS
	 *
	 * [--format=<format>]
	 * : Output format of the checks.
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
	 * : Columns: id, status, message, fix.
	 *
	 * [--porcelain]
	 * : Print only the overall status: ok, warning or error.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox doctor
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox doctor',
			Capabilities::REVIEW,
			null,
			$flags,
			fn( Authority $authority ): int => $this->examine( $flags )
		);
	}

	/**
	 * Checks WordPress, the extension and the host, prints the results and returns the exit status.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	private function examine( array $flags ): int {
		$checks = [ $this->wordpress() ];
		$level  = 'unknown';
		$report = [];
		$gate   = $this->services->gate->failure();
		if ( null !== $gate ) {
			$checks[] = $this->broken( ErrorCode::StateDirInvalid->value === $gate->error_code ? 'state-dir' : 'extension', $gate );
		} else {
			$checks[] = $this->check( 'extension', 'ok', sprintf( 'The extension is version %s and fits the plugin.', Extension::version() ) );
			try {
				$host   = Extension::doctor();
				$report = (array) ( $host['isolation'] ?? [] );
				$level  = (string) ( $host['level'] ?? 'unknown' );
				$checks = array_merge( $checks, array_map( [ $this, 'host_row' ], array_values( (array) ( $host['checks'] ?? [] ) ) ) );
			} catch ( Throwable $thrown ) {
				$checks[] = $this->broken( 'runner', Failure::from( $thrown ) );
			}
		}
		$found  = array_column( $checks, 'status' );
		$status = in_array( 'error', $found, true ) ? 'error' : ( in_array( 'warning', $found, true ) ? 'warning' : 'ok' );
		$this->print( $status, $level, $report, $checks, $flags );
		return 'error' === $status ? 1 : 0;
	}

	/**
	 * Prints the results of all checks.
	 *
	 * @param string                      $status Worst status of all checks: `ok`, `warning` or `error`.
	 * @param string                      $level  Isolation level that this host can enforce: `full`, `reduced` or `unknown`.
	 * @param array<string, mixed>        $report `wp-codebox/isolation-report/v1`; empty when no report
	 *   exists.
	 * @param list<array<string, string>> $checks Rows of the checks.
	 * @param array<string, mixed>        $flags  Flags of the command line, by name.
	 */
	private function print( string $status, string $level, array $report, array $checks, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) ) {
			Console::print( (string) $status );
			return;
		}
		if ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) && ! isset( $flags['fields'] ) ) {
			$document = [
				'schema' => 'wp-codebox/doctor/v1',
				'status' => $status,
				'level'  => $level,
				'checks' => $checks,
			];
			$this->console->document( $document + array_filter( [ 'isolation' => $report ] ), $flags['format'] );
			return;
		}
		$this->table->print( $checks, [ 'id', 'status', 'message', 'fix' ], 'id', $flags );
		$this->console->say( sprintf( 'Status: %s. Isolation level: %s.', $status, $level ) );
	}

	/** Checks whether this WordPress has the Abilities API. */
	private function wordpress(): array {
		if ( function_exists( 'wp_register_ability' ) ) {
			return $this->check( 'wordpress', 'ok', sprintf( 'WordPress %s has the Abilities API.', get_bloginfo( 'version' ) ) );
		}
		return $this->check( 'wordpress', 'warning', sprintf( 'WordPress %s has no Abilities API; only the WP-CLI commands work.', get_bloginfo( 'version' ) ), 'Update to WordPress 6.9 or newer.' );
	}

	/**
	 * Returns the table row of a check that ended with a failure.
	 *
	 * @param string  $id      Id of the check.
	 * @param Failure $failure Failure to report.
	 * @return array<string, string>
	 */
	private function broken( string $id, Failure $failure ): array {
		return $this->check( $id, 'error', sprintf( '%s (%s)', $failure->getMessage(), $failure->error_code ), implode( ' ', $failure->hints ) );
	}

	/**
	 * Returns the table row of a check that the native extension reported.
	 *
	 * @param mixed $check `{id, status, message, fix?}`.
	 * @return array<string, string>
	 */
	private function host_row( mixed $check ): array {
		$check = (array) $check;
		return $this->check( (string) ( $check['id'] ?? '' ), (string) ( $check['status'] ?? 'error' ), (string) ( $check['message'] ?? '' ), (string) ( $check['fix'] ?? '' ) );
	}

	/**
	 * Returns the table row of one check.
	 *
	 * @param string $id      Id of the check.
	 * @param string $status  `ok`, `warning` or `error`.
	 * @param string $message Result in one sentence.
	 * @param string $fix     Suggested fix, or '' without one.
	 * @return array<string, string>
	 */
	private function check( string $id, string $status, string $message, string $fix = '' ): array {
		return [
			'id'      => $id,
			'status'  => $status,
			'message' => $message,
			'fix'     => $fix,
		];
	}
}
