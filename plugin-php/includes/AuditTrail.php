<?php
/**
 * The site's audit log.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use Throwable;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;

defined( 'ABSPATH' ) || exit;

/**
 * Every decision and every result is one line of a hash chain that the extension
 * keeps. The log records; it never authorises.
 */
final class AuditTrail {

	/** Option with the newest signed anchor of the log by key of the host: the database does not lie where the log does. */
	private const ANCHORS = 'wp_codebox_audit_anchor';

	/**
	 * Wires the log.
	 *
	 * @param Site $site This site.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Appends one record.
	 *
	 * @param string               $event  What happened, e.g. `apply`.
	 * @param array<string, mixed> $record Detail; never a patch or file content.
	 * @return array<string, mixed> The record as stored, with `seq` and `hash`.
	 * @throws Failure `wp_codebox_audit_failed`.
	 */
	public function write( string $event, array $record ): array {
		$head = [
			'schema'    => 'wp-codebox/apply-audit/v1',
			'event'     => $event,
			'requester' => $this->requester(),
		];
		try {
			$kept   = self::anchors();
			$answer = Artifacts::audit( $this->site->id(), $head + $record, $kept );
			update_option( self::ANCHORS, array_replace( $kept, [ $answer['anchor']['key_id'] => $answer['anchor'] ] ), false );
			return $answer['record'];
		} catch ( Throwable $thrown ) {
			$cause = Failure::from( $thrown );
			throw Failure::because(
				ErrorCode::AuditFailed,
				__( 'The audit log could not be written, so this cannot go on; make the state directory writable for its owner and try again.', 'codebox' ),
				$cause->hints,
				[ 'cause' => $cause->error_code ]
			);
		}
	}

	/**
	 * Notes that something failed, and answers the failure to throw. The cause is more
	 * useful than a second failure, so a log that cannot be written is added to it.
	 *
	 * @param string               $event  What was asked for.
	 * @param array<string, mixed> $record Detail.
	 * @param Throwable            $thrown Why not.
	 */
	public function failure( string $event, array $record, Throwable $thrown ): Failure {
		$failure = Failure::from( $thrown );
		try {
			$this->write(
				$event,
				$record + [
					'status' => 'failure',
					'error'  => $failure->recorded(),
				]
			);
		} catch ( Throwable ) {
			return new Failure(
				$failure->error_code,
				$failure->getMessage(),
				$failure->http_status,
				$failure->exit_status,
				array_merge( $failure->hints, [ __( 'The audit log could not be written either.', 'codebox' ) ] ),
				$failure->data,
				$failure
			);
		}
		return $failure;
	}

	/**
	 * Who approved: as the caller says, which proves nothing, else who is asking.
	 *
	 * @param array<string, mixed> $input Input with `approver`, or without.
	 * @return array{approver: mixed, approver_claimed: bool}
	 */
	public function approver( array $input ): array {
		$given   = $input['approver'] ?? null;
		$claimed = ! in_array( $given, [ null, '', [] ], true );
		return [
			'approver'         => $claimed ? $given : $this->requester(),
			'approver_claimed' => $claimed,
		];
	}

	/**
	 * The anchors of earlier records, against which the extension checks that none is missing.
	 *
	 * @return array<string, mixed>
	 */
	public static function anchors(): array {
		$kept = get_option( self::ANCHORS, [] );
		return is_array( $kept ) ? $kept : [];
	}

	/**
	 * Who is asking: a user, or whoever holds the shell.
	 *
	 * @return array<string, mixed>
	 */
	public function requester(): array {
		$user = wp_get_current_user();
		if ( $user->exists() ) {
			return [
				'kind'  => 'user',
				'id'    => $user->ID,
				'login' => $user->user_login,
			];
		}
		return [ 'kind' => defined( 'WP_CLI' ) && WP_CLI ? 'operator' : 'none' ];
	}
}
