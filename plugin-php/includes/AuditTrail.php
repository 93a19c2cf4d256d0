<?php
/**
 * Writes the site's audit log.
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
 * Every decision and every result is one line of a hash chain that the extension writes. The log only
 * records; it authorizes nothing.
 */
final class AuditTrail {

	/**
	 * Option with the newest anchor of the log, by id of the host's key. An anchor is the signed length and last hash of the
	 * log. The database is a different storage than the log, so the anchor reveals a truncated log.
	 */
	private const ANCHORS = 'wp_codebox_audit_anchor';

	/**
	 * Creates the log with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Appends one record.
	 *
	 * @param string               $event  Event name, e.g. `apply`.
	 * @param array<string, mixed> $record Fields of the record; never a patch or file content.
	 * @return array<string, mixed> Stored record with `seq` and `hash`.
	 * @throws Failure `wp_codebox_audit_failed`.
	 */
	public function write( string $event, array $record ): array {
		$head = [
			'schema'    => 'wp-codebox/apply-audit/v1',
			'event'     => $event,
			'requester' => $this->requester(),
		];
		try {
			return self::append( $this->site->id(), $head + $record );
		} catch ( Throwable $thrown ) {
			$cause = Failure::from( $thrown );
			throw Failure::because(
				ErrorCode::AuditFailed,
				__( 'The audit log could not be written, so the operation was stopped; make the state directory writable for its owner and try again.', 'codebox' ),
				$cause->hints,
				[ 'cause' => $cause->error_code ]
			);
		}
	}

	/**
	 * Appends a complete record and stores the new anchor. Works without a user.
	 *
	 * @param string               $site   Id of the site.
	 * @param array<string, mixed> $record Complete record.
	 * @return array<string, mixed> Stored record with `seq` and `hash`.
	 */
	public static function append( string $site, array $record ): array {
		$kept   = self::anchors();
		$answer = Artifacts::audit( $site, $record, $kept );
		update_option( self::ANCHORS, array_replace( $kept, [ $answer['anchor']['key_id'] => $answer['anchor'] ] ), false );
		return $answer['record'];
	}

	/**
	 * Records a failure and returns the exception to throw. When the log cannot be written, that error is
	 * added to the original failure instead of replacing it.
	 *
	 * @param string               $event  Requested operation.
	 * @param array<string, mixed> $record Fields of the record.
	 * @param Throwable            $thrown Original exception.
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
				array_merge( $failure->hints, [ __( 'The audit log could not be written either, so it does not contain this failure.', 'codebox' ) ] ),
				$failure->data,
				$failure
			);
		}
		return $failure;
	}

	/**
	 * Returns the approver: the name that the caller claims, which proves nothing, else the authenticated
	 * user.
	 *
	 * @param array<string, mixed> $input Ability input with or without `approver`.
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
	 * Returns the stored anchors: signed lengths and last hashes of the log. The extension compares them with the log to
	 * detect missing records.
	 *
	 * @return array<string, mixed>
	 */
	public static function anchors(): array {
		$kept = get_option( self::ANCHORS, [] );
		return is_array( $kept ) ? $kept : [];
	}

	/**
	 * Returns the requester: the current user, or the operator on the command line.
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
