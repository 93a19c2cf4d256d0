<?php
/**
 * `wp codebox audit`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\AuditLog;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Reads the audit log: which user approved, applied, imported or discarded which bundle.
 */
final class AuditCommand extends Command {

	/**
	 * Lists audit records, oldest first; without --after only the newest page. Exit status 1 when the hash
	 * chain is broken.
	 *
	 * ## OPTIONS
	 *
	 * [--after=<number>]
	 * : Show only records with a higher sequence number.
	 *
	 * [--per-page=<number>]
	 * : Maximum number of records, at most 1000.
	 * ---
	 * default: 20
	 * ---
	 *
	 * [--full]
	 * : Show the complete stored records, with approved files, targets, results and mounts.
	 *
	 * [--format=<format>]
	 * : Output format; `ids` prints sequence numbers.
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
	 * : Columns: seq, timestamp, event, status, action, who, requester, approver, run_id, artifact_id, approved_count, error, hash.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox audit list --per-page=50
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function list( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox audit list',
			Capabilities::REVIEW,
			'wp-codebox/list-audit-records',
			$flags,
			function () use ( $flags ): int {
				$input = [ 'per_page' => Quantity::whole( 'per-page', (string) $flags['per-page'], 1, 1000 ), 'full' => ! empty( $flags['full'] ) ];
				if ( isset( $flags['after'] ) ) {
					$input['after'] = Quantity::whole( 'after', (string) $flags['after'], 0, 1000000000 );
				}
				$page = $this->services->audit->list( $input );
				$this->rows( $page, array_map( [ $this, 'record' ], $page['records'] ), [ 'seq', 'timestamp', 'event', 'status', 'who', 'run_id' ], 'seq', $flags );
				if ( $page['more'] ) {
					$this->console->say( sprintf( 'More records follow: --after=%d.', $page['cursor'] ) );
				}
				return $this->judge( $page );
			}
		);
	}

	/**
	 * Verifies the hash chain of all records. Also compares the log with the signed number of records and last
	 * hash, which the state directory and the database store, to detect records removed from the end. Exit
	 * status 1 when a check fails.
	 *
	 * ## OPTIONS
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - count
	 * ---
	 *
	 * [--porcelain]
	 * : Print only the hash of the last record.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox audit verify
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function verify( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox audit verify',
			Capabilities::REVIEW,
			'wp-codebox/list-audit-records',
			$flags,
			function () use ( $flags ): int {
				$page  = $this->services->audit->list( [ 'per_page' => 1 ] );
				$chain = [ 'valid' => (bool) $page['chain']['valid'] ] + $page['chain'] + [ 'total' => $page['total'] ];
				if ( ! empty( $flags['porcelain'] ) ) {
					Console::print( (string) ( $chain['head'] ?? '' ) );
				} else {
					$this->document( $chain, [ $chain ], array_keys( $chain ), 'valid', $flags );
				}
				if ( $chain['valid'] ) {
					$this->console->say( sprintf( 'The hash chain of %d records is intact.', $page['total'] ) );
				}
				return $this->judge( $page );
			}
		);
	}

	/**
	 * Prints a warning when the hash chain of the audit log is broken. Returns the exit status: 1 when broken, else 0.
	 *
	 * @param array<string, mixed> $page Page of audit records, with `chain`, the result of the verification.
	 */
	private function judge( array $page ): int {
		$problem = AuditLog::problem( $page['chain'] );
		if ( '' === $problem ) {
			return 0;
		}
		$this->console->warn( $problem );
		return 1;
	}

	/**
	 * Returns the audit record as a table row: with the requester in `who` as one string, and '' for absent columns.
	 *
	 * @param array<string, mixed> $record Audit record as stored.
	 * @return array<string, mixed>
	 */
	private function record( array $record ): array {
		$requester = (array) ( $record['requester'] ?? [] );
		return [
			'who'      => (string) ( $requester['login'] ?? $requester['kind'] ?? '' ),
			'approver' => $this->approver( $record ),
		] + $record + [
			'status'      => '',
			'action'      => '',
			'run_id'      => '',
			'artifact_id' => '',
			'approved_count' => '',
			'error'       => '',
		];
	}

	/**
	 * Returns the approver's name, followed by "(claimed)" when the name comes from the caller's input and not from a login.
	 *
	 * @param array<string, mixed> $record Audit record as stored.
	 */
	private function approver( array $record ): string {
		$approver = $record['approver'] ?? '';
		$name     = is_array( $approver ) ? (string) ( $approver['login'] ?? $approver['name'] ?? $approver['kind'] ?? wp_json_encode( $approver ) ) : (string) $approver;
		return empty( $record['approver_claimed'] ) ? $name : "$name (claimed)";
	}
}
