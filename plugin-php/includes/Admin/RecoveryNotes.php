<?php
/**
 * What prevents the recovery link of direct apply, and changes that were interrupted or not recorded.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\DirectApply\ChangeMarks;
use WPCodebox\DirectApply\RecoveryFile;
use WPCodebox\DirectApply\RecoveryLink;
use WPCodebox\ExtensionGate;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Finds reasons why the recovery link would not be sent, or would not work, after the next change; and changes that are
 * not settled, or not in the audit log.
 */
final class RecoveryNotes {

	/**
	 * Returns a sentence for each cause, with suggested fixes. Empty while direct apply is off.
	 *
	 * @param Settings $settings Settings that turn direct apply on.
	 * @return list<array{string, list<string>}>
	 */
	public static function all( Settings $settings ): array {
		if ( ! $settings->direct_apply() ) {
			return [];
		}
		$notes   = [];
		$failure = RecoveryFile::failure();
		if ( null !== $failure ) {
			$notes[] = [ $failure->getMessage(), $failure->hints ];
		}
		$before = RecoveryFile::loaded_before();
		if ( [] !== $before ) {
			$names   = implode( ', ', $before );
			$notes[] = [
				/* translators: %s: names of files. */
				Sentence::of( __( 'WordPress loads these must-use plugins before the one with the recovery link, which does not work when one of them fails: %s', 'codebox' ), $names ),
				[
					__( 'Rename them, so that their names begin with a letter.', 'codebox' ),
				],
			];
		}
		$unsent = get_option( RecoveryLink::UNSENT );
		if ( is_array( $unsent ) ) {
			$notes[] = [
				self::unsent( (string) $unsent['address'], (string) $unsent['reason'] ),
				[
					__( 'Let WordPress send mail: install a mail program (sendmail) on the host, or a plugin that sends mail over SMTP.', 'codebox' ),
					__( 'The last change can be taken back on the page Tools, Codebox.', 'codebox' ),
				],
			];
		}
		return $notes;
	}

	/**
	 * Returns title, sentence and suggested fixes for changes that are not settled, or not in the audit log. This request
	 * has already tried to settle and to record them.
	 *
	 * @return list<array{string, string, list<string>}>
	 */
	public static function changes(): array {
		$notes     = [];
		$unsettled = ChangeMarks::unsettled();
		if ( '' !== $unsettled ) {
			$notes[] = [ __( 'A change of files was interrupted.', 'codebox' ), $unsettled, [] ];
		}
		$reasons   = ChangeMarks::unwritten();
		if ( [] !== $reasons ) {
			$count   = count( $reasons );
			$notes[] = [
				__( 'The audit log of Codebox is not complete.', 'codebox' ),
				/* translators: 1: number of changes, 2: error message. */
				sprintf( _n( '%1$d change was taken back or interrupted, and its record could not be written: %2$s.', '%1$d changes were taken back or interrupted, and their records could not be written: %2$s.', $count, 'codebox' ), $count, rtrim( $reasons[0], '.' ) ),
				[
					/* translators: %s: directory. */
					sprintf( __( 'Make the directory %s and its files writable for the user that PHP runs as, and check its free space. The next request of the site then writes what is missing.', 'codebox' ), (string) ( ExtensionGate::info()['state_dir'] ?? '' ) ),
					__( 'While the log cannot be written, changes can be taken back but not applied.', 'codebox' ),
				],
			];
		}
		return $notes;
	}

	/**
	 * Describes a mail that could not be sent.
	 *
	 * @param string $address Mail address; '' if the approver has none.
	 * @param string $reason  Reason of WordPress, or ''.
	 */
	private static function unsent( string $address, string $reason ): string {
		if ( '' === $address ) {
			return __( 'The last mail about an applied change was not sent, because the approver has no mail address. If the next change breaks the dashboard, nobody gets the link that takes it back.', 'codebox' );
		}
		$about = '' === $reason ? $address : $address . ' (' . rtrim( $reason, '.' ) . ')';
		/* translators: %s: mail address and reason. */
		return Sentence::of( __( 'The last mail about an applied change could not be sent: %s. If the next change breaks the dashboard, nobody gets the link that takes it back.', 'codebox' ), $about );
	}
}
