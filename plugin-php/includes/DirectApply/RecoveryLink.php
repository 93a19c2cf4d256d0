<?php
/**
 * Link by mail that takes a change back.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use Throwable;
use WPCodebox\AuditTrail;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Changes;

defined( 'ABSPATH' ) || exit;

/**
 * The link works without any plugin, theme or login: `recover.php` loads only WordPress's options. It is valid
 * once and for an hour, and only the newest change has one. The option holds a hash, not the token.
 */
final class RecoveryLink {

	/** Option with the site id, the change, the end of validity, and a hash of the token. */
	public const OPTION = 'wp_codebox_recovery';

	/** Validity in seconds. */
	private const VALID = 3600;

	/**
	 * Creates the link with its dependencies.
	 *
	 * @param Site   $site Site the plugin runs on.
	 * @param string $file Main file of the plugin.
	 */
	public function __construct(
		private readonly Site $site,
		private readonly string $file
	) {}

	/**
	 * Mails a link for an applied change to the current user, who approved it. Without a user, the mail goes to the
	 * address of the site. A mail that cannot be sent does not change the result of the apply.
	 *
	 * @param string               $change  Id of the change.
	 * @param array<string, mixed> $payload Applied change: `run_id`, `artifact_id`, `approved_files`.
	 */
	public function send( string $change, array $payload ): void {
		$user = wp_get_current_user();
		/**
		 * Filters who gets the link that takes an applied change back.
		 *
		 * @param string $address Mail address of the approver, or of the site; '' sends no mail.
		 * @param string $change  Id of the change.
		 */
		$address = apply_filters( 'wp_codebox_recovery_address', $user->exists() ? $user->user_email : (string) get_option( 'admin_email' ), $change );
		if ( ! is_string( $address ) || ! is_email( $address ) ) {
			return;
		}
		$token = bin2hex( random_bytes( 32 ) );
		update_option(
			self::OPTION,
			[
				'hash'   => hash( 'sha256', $token ),
				'site'   => $this->site->id(),
				'change' => $change,
				'bundle' => [
					'artifact_id' => $payload['artifact_id'],
					'run_id'      => $payload['run_id'],
				],
				'ends'   => time() + self::VALID,
			],
			false
		);
		$link  = add_query_arg( 'token', $token, plugins_url( 'recover.php', $this->file ) );
		$lines = [
			/* translators: %s: name of the site. */
			sprintf( __( 'A change was applied to files of %s:', 'codebox' ), wp_specialchars_decode( get_bloginfo( 'name' ), ENT_QUOTES ) ),
			implode( "\n", $payload['approved_files'] ),
			__( 'If the site or its dashboard does not work any more, this link takes the change back. It needs no login, works once, and is valid for one hour:', 'codebox' ),
			$link,
		];
		try {
			/* translators: %s: name of the site. */
			wp_mail( $address, sprintf( __( '[%s] A change was applied', 'codebox' ), wp_specialchars_decode( get_bloginfo( 'name' ), ENT_QUOTES ) ), implode( "\n\n", $lines ) );
		} catch ( Throwable $thrown ) {
			// Called only to write the server's log.
			Failure::from( $thrown );
		}
	}

	/**
	 * Returns the change of a valid token; null for any other token. Runs without plugins and users.
	 *
	 * @param string $token Token of a link.
	 * @return array{hash: string, site: string, change: string, bundle: array<string, string>, ends: int}|null
	 */
	public static function of( string $token ): ?array {
		$stored = get_option( self::OPTION );
		$valid  = is_array( $stored ) && time() < (int) ( $stored['ends'] ?? 0 ) && hash_equals( (string) ( $stored['hash'] ?? '' ), hash( 'sha256', $token ) );
		return $valid ? $stored : null;
	}

	/**
	 * Takes the change of a valid token back and invalidates the token. Runs without plugins and users.
	 *
	 * @param array{hash: string, site: string, change: string, bundle: array<string, string>, ends: int} $stored What `of()` returned.
	 * @return array<string, mixed> Result of `Changes::rollBack()`.
	 */
	public static function redeem( array $stored ): array {
		delete_option( self::OPTION );
		$record = [
			'schema'    => 'wp-codebox/apply-audit/v1',
			'event'     => 'rollback',
			'requester' => [ 'kind' => 'none' ],
			'change'    => $stored['change'],
		] + (array) ( $stored['bundle'] ?? [] );
		AuditTrail::append( $stored['site'], $record + [ 'status' => 'started' ] );
		$result = Changes::rollBack( $stored['site'], $stored['change'], [], [], [ self::class, 'drop' ] );
		AuditTrail::append( $stored['site'], $record + self::outcome( $result ) );
		return $result;
	}

	/**
	 * Returns the audit fields of a roll back.
	 *
	 * @param array<string, mixed> $result Result of `Changes::rollBack()`.
	 * @return array<string, mixed>
	 */
	private static function outcome( array $result ): array {
		return [
			'status'  => 'restored' === $result['status'] ? 'success' : 'failure',
			'adapter' => DirectApply::ADAPTER,
			'result'  => array_intersect_key( $result, [ 'status' => 1, 'files' => 1, 'conflicts' => 1 ] ),
		];
	}

	/**
	 * Drops files from the opcode cache of this PHP, without WordPress's functions.
	 *
	 * @param list<string> $files Host paths.
	 */
	public static function drop( array $files ): void {
		clearstatcache( true );
		foreach ( $files as $file ) {
			function_exists( 'opcache_invalidate' ) && opcache_invalidate( (string) $file, true );
		}
	}
}
