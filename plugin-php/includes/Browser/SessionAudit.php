<?php
/**
 * Audit records of browser sessions.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\AuditTrail;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * A session hands code of this site to a browser or to a client with an application password, so its beginning and its end are in the
 * audit log. The extension writes the log; a session needs no extension, so a site without the extension has no such records.
 */
final class SessionAudit {

	private const EVENT = 'browser-session';

	/**
	 * Creates the recorder with its dependencies.
	 *
	 * @param ExtensionGate $gate  Check that the PHP extension is loaded and its version fits.
	 * @param AuditTrail    $audit Audit log.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Records a new session with the code that it began with.
	 *
	 * @param SessionRecord $record Session.
	 * @param Owner         $owner  Caller who created it.
	 * @throws Failure `wp_codebox_audit_failed`.
	 */
	public function created( SessionRecord $record, Owner $owner ): void {
		$this->write( 'create', $record, [ 'authorization' => $owner->authorization ] );
	}

	/**
	 * Records the end of a session that its user asked for. A session that expires leaves no record.
	 *
	 * @param SessionRecord $record Session.
	 * @throws Failure `wp_codebox_audit_failed`.
	 */
	public function ended( SessionRecord $record ): void {
		$this->write( 'destroy', $record, [] );
	}

	/**
	 * Writes a record where the extension can.
	 *
	 * @param string               $action `create` or `destroy`.
	 * @param SessionRecord        $record Session.
	 * @param array<string, mixed> $more   Further fields.
	 */
	private function write( string $action, SessionRecord $record, array $more ): void {
		if ( null !== $this->gate->failure() ) {
			return;
		}
		$this->audit->write(
			self::EVENT,
			[
				'status' => 'success',
				'action' => $action,
				'source' => [
					'session_id' => $record->session_id,
					'site_id'    => $record->site_id,
					'baseline'   => $record->baseline,
					'expires_at' => gmdate( 'c', $record->expires_at ),
				],
			] + $more
		);
	}
}
