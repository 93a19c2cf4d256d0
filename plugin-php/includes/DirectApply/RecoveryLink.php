<?php
/**
 * Link by mail that takes a change back.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use Throwable;
use WP_Error;
use WP_User;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\PlainText;

defined( 'ABSPATH' ) || exit;

/**
 * The must-use plugin of RecoveryFile answers the link without other plugins, theme or login. The link is valid for an
 * hour or until it took the change back, and only the newest change has one. The option holds a hash, not the token.
 */
final class RecoveryLink {

	/** Option with the site id, the change, the end of validity, and a hash of the token; also the query parameter. */
	public const OPTION = 'wp_codebox_recovery';

	/** Option with the address and the reason of the last mail, if it could not be sent. */
	public const UNSENT = 'wp_codebox_recovery_unsent';

	/** Validity in seconds. */
	private const VALID = 3600;

	/**
	 * Creates the link with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Mails a link for an applied change to the user who approved it. Without a user, the mail goes to the address of the
	 * site. A mail that cannot be sent does not change the result of the apply; Notices tells it.
	 *
	 * @param string               $change Id of the change.
	 * @param array<string, mixed> $bundle Bundle of the change: `run_id`, `artifact_id`.
	 * @param list<string>         $files  Files of the change.
	 * @param int                  $user   Id of the approver; 0 at the shell.
	 * @param string               $remark Sentence about the change, or ''.
	 */
	public function send( string $change, array $bundle, array $files, int $user, string $remark = '' ): void {
		$token = bin2hex( random_bytes( 32 ) );
		update_option(
			self::OPTION,
			[
				'hash'   => hash( 'sha256', $token ),
				'site'   => $this->site->id(),
				'change' => $change,
				'bundle' => [
					'artifact_id' => $bundle['artifact_id'],
					'run_id'      => $bundle['run_id'],
				],
				'ends'   => time() + self::VALID,
			],
			false
		);
		$this->mail(
			$user,
			$change,
			/* translators: %s: name of the site. */
			__( '[%s] A change was applied', 'codebox' ),
			[
				/* translators: %s: name of the site. */
				sprintf( __( 'A change was applied to files of %s:', 'codebox' ), self::name() ),
				implode( "\n", array_map( PlainText::file_name( ... ), $files ) ),
				/* translators: 1: id of the change, 2: id of the run. */
				sprintf( __( 'Change %1$s of run %2$s.', 'codebox' ), $change, $bundle['run_id'] ),
				$remark,
				__( 'If the site or its dashboard does not work any more, open this link and press the button: it takes the change back. It needs neither a login nor a shell, works once, and is valid for one hour:', 'codebox' ),
				add_query_arg( self::OPTION, $token, home_url( '/' ) ),
				__( 'While the dashboard works, you can take the change back there at any time: Tools, Codebox, the bundle of the run.', 'codebox' ),
			]
		);
	}

	/**
	 * Mails how an apply ended whose request was interrupted; with a link if the files are changed.
	 *
	 * @param array<string, mixed> $mark Mark of the change.
	 * @param array<string, mixed> $end  `status` and `result` of the change.
	 */
	public function report( array $mark, array $end ): void {
		$bundle  = (array) $mark['about'];
		$user    = (int) ( $mark['user'] ?? 0 );
		$message = (string) ( $end['result']['message'] ?? '' );
		if ( 'apply' !== $bundle['event'] ) {
			return;
		}
		if ( 'success' === $end['status'] ) {
			$this->send( $end['result']['audit_reference'], $bundle, $end['result']['applied_files'], $user, $message );
			return;
		}
		$this->mail(
			$user,
			'',
			/* translators: %s: name of the site. */
			__( '[%s] A change was interrupted', 'codebox' ),
			[
				/* translators: 1: id of the run, 2: name of the site. */
				sprintf( __( 'The request that applied the change of run %1$s to files of %2$s was interrupted.', 'codebox' ), $bundle['run_id'], self::name() ),
				$message,
				__( 'You can see the bundle of the run and apply it again in the dashboard: Tools, Codebox.', 'codebox' ),
			]
		);
	}

	/**
	 * Sends a mail, and stores why it could not be sent.
	 *
	 * @param int          $user    Id of the approver; 0 at the shell.
	 * @param string       $change  Id of the change; '' if nothing is changed.
	 * @param string       $subject Subject with a placeholder for the name of the site.
	 * @param list<string> $lines   Paragraphs; '' is left out.
	 */
	private function mail( int $user, string $change, string $subject, array $lines ): void {
		$person = get_userdata( $user );
		/**
		 * Filters who gets the link that takes an applied change back.
		 *
		 * @param string $address Mail address of the approver, or of the site; '' sends no mail.
		 * @param string $change  Id of the change; '' if the mail is about an interrupted change that left no changed file.
		 */
		$address = apply_filters( 'wp_codebox_recovery_address', $person instanceof WP_User ? $person->user_email : (string) get_option( 'admin_email' ), $change );
		if ( '' === $address && ( ! $person instanceof WP_User || '' !== $person->user_email ) ) {
			return;
		}
		$reason = '';
		$listen = static function ( WP_Error $error ) use ( &$reason ): void {
			$reason = $error->get_error_message();
		};
		add_action( 'wp_mail_failed', $listen );
		try {
			$sent = is_string( $address ) && is_email( $address ) && wp_mail( $address, sprintf( $subject, self::name() ), implode( "\n\n", array_map( PlainText::of( ... ), array_filter( $lines ) ) ) );
		} catch ( Throwable $thrown ) {
			// Called only to write the server's log.
			Failure::from( $thrown );
			$sent = false;
		} finally {
			remove_action( 'wp_mail_failed', $listen );
		}
		if ( $sent ) {
			delete_option( self::UNSENT );
			return;
		}
		update_option(
			self::UNSENT,
			[
				'address' => is_string( $address ) ? $address : '',
				'reason'  => $reason,
			],
			false
		);
	}

	/** Returns the name of the site as plain text. */
	private static function name(): string {
		return wp_specialchars_decode( get_bloginfo( 'name' ), ENT_QUOTES );
	}
}
