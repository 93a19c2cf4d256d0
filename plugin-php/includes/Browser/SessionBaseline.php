<?php
/**
 * Code with which a browser session began.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/** What this host recorded about a session that is not expired and belongs to the current user and site. */
final class SessionBaseline {

	/**
	 * Creates the record.
	 *
	 * @param string               $session_id Id of the session.
	 * @param int                  $user_id    User who opened the session.
	 * @param int                  $blog_id    Site on which the session was opened.
	 * @param list<array{target: string, archive: string}> $roots Directories below `wp-content`; `archive` is the sha256 of a stored zip archive.
	 * @param array<string, mixed> $facts      Facts of this host for the provenance, such as `preview_id`.
	 */
	public function __construct(
		public readonly string $session_id,
		public readonly int $user_id,
		public readonly int $blog_id,
		public readonly array $roots,
		public readonly array $facts = []
	) {}
}
