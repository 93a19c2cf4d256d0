<?php
/**
 * `wp codebox gc`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Native\Extension;

defined( 'ABSPATH' ) || exit;

/**
 * Removes leftovers of runs of this site.
 */
final class GcCommand extends Command {

	/**
	 * Removes leftovers of runs of this site: directories of ended runs, orphaned scratch directories,
	 * unfinished bundles.
	 *
	 * Files of a live run are never touched. Bundles stay unless --artifacts-max-age or the retention setting
	 * covers them. Exit status 1 when an entry could not be removed.
	 *
	 * ## OPTIONS
	 *
	 * [--max-age=<duration>]
	 * : Remove ended runs older than this, e.g. 12h. Default: the site's retention setting, else 30 days.
	 *
	 * [--max-bytes=<size>]
	 * : Keep at most this size of ended runs, newest first, e.g. 500M. Default: the site's retention setting.
	 *
	 * [--artifacts-max-age=<duration>]
	 * : Also delete bundles older than this. Default: the site's retention setting; without it, bundles are
	 * kept.
	 *
	 * [--dry-run]
	 * : List the removable entries without removing them.
	 *
	 * [--format=<format>]
	 * : Output format of the removed entries.
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
	 * : Columns: kind, id, bytes, reason.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox gc --max-age=24h --dry-run
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox gc',
			Capabilities::REVIEW,
			null,
			$flags,
			fn( Authority $authority ): int => $this->collect( $flags )
		);
	}

	/**
	 * Runs the garbage collection and prints the result.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	private function collect( array $flags ): int {
		$this->services->gate->check();
		$answer = Extension::gc( $this->services->site->id(), self::options( $flags ) + $this->services->settings->retention() );
		if ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) && ! isset( $flags['fields'] ) ) {
			$this->console->document( $answer, $flags['format'] );
		} else {
			$this->table->print( $answer['removed'], [ 'kind', 'id', 'bytes', 'reason' ], 'id', $flags );
			foreach ( $answer['failed'] as $failure ) {
				$this->console->say( sprintf( 'Not removed: %s %s: %s.', $failure['kind'], $failure['id'], $failure['message'] ) );
			}
			$this->console->say(
				sprintf(
					'%s %d, %s; %d crashed runs recorded as ended, %d runs still active, %d ended runs kept.',
					$answer['dry_run'] ? 'Would remove' : 'Removed',
					count( $answer['removed'] ),
					Quantity::human_bytes( (int) $answer['freed_bytes'] ),
					$answer['settled'],
					$answer['alive'],
					$answer['kept']
				)
			);
			foreach ( $answer['stayed'] as $row ) {
				$why = 'recently-used' === $row['reason'] ? 'used within 25 hours, so a run may still need it' : 'removed only on request (--artifacts-max-age for bundles)';
				$this->console->say( sprintf( 'Kept: %d %s: %s.', $row['count'], $row['kind'], $why ) );
			}
		}
		return $answer['success'] ? 0 : 1;
	}

	/**
	 * Converts the flags to the options of `Extension::gc()`.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, int|bool>
	 */
	private static function options( array $flags ): array {
		$options = [ 'dry_run' => ! empty( $flags['dry-run'] ) ];
		foreach ( [
			'max-age'           => 'max_age_seconds',
			'artifacts-max-age' => 'artifacts_max_age_seconds',
		] as $flag => $name ) {
			if ( isset( $flags[ $flag ] ) ) {
				$options[ $name ] = intdiv( Quantity::milliseconds( $flag, (string) $flags[ $flag ] ), 1000 );
			}
		}
		if ( isset( $flags['max-bytes'] ) ) {
			$options['max_bytes'] = Quantity::bytes( 'max-bytes', (string) $flags['max-bytes'] );
		}
		return $options;
	}
}
