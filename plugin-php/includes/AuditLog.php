<?php
/**
 * Reads the audit log.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;

defined( 'ABSPATH' ) || exit;

/**
 * Returns the records of this site and the state of their hash chain: whether it is intact and no record is
 * missing at its end. The extension verifies the whole log, once in each process while the file stays unchanged.
 */
final class AuditLog {

	public const PER_PAGE = 20;

	/** Record fields that may be large; the list omits them unless the caller sets `full`. */
	private const LARGE = [ 'approved_files', 'targets', 'result', 'mounts' ];

	/**
	 * Creates the reader with its dependencies.
	 *
	 * @param ExtensionGate $gate Check that the PHP extension is loaded and its version fits.
	 * @param Site          $site Site the plugin runs on.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Site $site
	) {}

	/**
	 * Lists one page of audit records, oldest first. Without `after` the page holds the newest records, with `after` the
	 * records that follow this number.
	 *
	 * @param array<string, mixed> $input Ability input with `after?`, `per_page?`, `full?`.
	 * @return array<string, mixed> `wp-codebox/audit-record-list/v1`.
	 */
	public function list( array $input ): array {
		$this->gate->check();
		$limit = (int) ( $input['per_page'] ?? self::PER_PAGE );
		$after = (int) ( $input['after'] ?? -$limit );
		$page  = Artifacts::auditRecords( $this->site->id(), $after, $limit, AuditTrail::anchors() );
		$last  = [] === $page['records'] ? max( 0, $after ) : (int) end( $page['records'] )['seq'];
		return [
			'success' => true,
			'schema'  => 'wp-codebox/audit-record-list/v1',
			'total'   => $page['total'],
			'records' => empty( $input['full'] ) ? array_map( [ self::class, 'small' ], $page['records'] ) : $page['records'],
			'cursor'  => $last,
			'more'    => $last < $page['total'] && [] !== $page['records'],
			'chain'   => $page['chain'],
		];
	}

	/**
	 * Removes the large fields from a record, and adds the number of approved files.
	 *
	 * @param array<string, mixed> $record Audit record as stored.
	 * @return array<string, mixed>
	 */
	private static function small( array $record ): array {
		$small = array_diff_key( $record, array_flip( self::LARGE ) );
		return isset( $record['approved_files'] ) ? $small + [ 'approved_count' => count( (array) $record['approved_files'] ) ] : $small;
	}

	/**
	 * Describes the problem of the hash chain; '' when it is intact.
	 *
	 * @param array<string, mixed> $chain Field `chain` of a list.
	 */
	public static function problem( array $chain ): string {
		if ( true === ( $chain['valid'] ?? false ) ) {
			return '';
		}
		$problem = (string) ( $chain['problem'] ?? '' );
		/* translators: %s: nothing, or the problem in parentheses with a space before it. */
		return Sentence::of( __( 'The hash chain of the audit log is broken%s: lines were changed, removed or added from outside. Keep a copy of the log and find out who could write it.', 'codebox' ), '' === $problem ? '' : ' (' . rtrim( $problem, '.' ) . ')' );
	}
}
