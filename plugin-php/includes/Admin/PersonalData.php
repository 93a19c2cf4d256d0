<?php
/**
 * Personal data: exporter, eraser and the suggested privacy policy text.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use Throwable;
use WP_User;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Runs;
use WPCodebox\Requester;
use WPCodebox\Run\TaskTexts;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The state directory stores user data in two places: the audit log (id and login name of the person who
 * decided) and run records (id of the requester). Both are exported. Neither is erased: the audit log is a
 * hash chain from which no record can be removed, and it proves who approved each change; the eraser reports
 * this. Data of other sites of the network is never read.
 */
final class PersonalData {

	/** Number of audit records, and of runs, that one call reads; WordPress calls again for the next page. */
	private const PAGE = 100;

	/**
	 * Creates exporter and eraser with their dependencies.
	 *
	 * @param ExtensionGate $gate Check that the PHP extension is loaded and its version fits.
	 * @param Site          $site Site the plugin runs on.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Site $site
	) {}

	/** Registers the hooks. */
	public function register(): void {
		add_filter( 'wp_privacy_personal_data_exporters', [ $this, 'add_exporter' ] );
		add_filter( 'wp_privacy_personal_data_erasers', [ $this, 'add_eraser' ] );
		add_action( 'admin_init', [ $this, 'suggest' ] );
	}

	/** Suggests the privacy policy text about runs and the audit log. */
	public function suggest(): void {
		wp_add_privacy_policy_content(
			'Codebox',
			wp_kses_post(
				wpautop(
					__( 'When a user of this site has a coding agent run in a sandbox, the site keeps the change the agent made and what it printed until the bundle is discarded, and the id of the user who asked. Who approved, applied or discarded a change is kept in an audit log with the user\'s id and login name. Exports of personal data list both; erasing an account does not change the audit log, since each of its records holds the hash of the one before. The plugin itself sends nothing to other servers; an agent may reach those that its task allows.', 'codebox' ),
					false
				)
			)
		);
	}

	/**
	 * Adds this plugin's exporter of personal data.
	 *
	 * @param mixed $exporters Exporters collected so far.
	 * @return mixed
	 */
	public function add_exporter( mixed $exporters ): mixed {
		if ( is_array( $exporters ) ) {
			$exporters['wp-codebox'] = [
				'exporter_friendly_name' => __( 'Codebox', 'codebox' ),
				'callback'               => [ $this, 'export' ],
			];
		}
		return $exporters;
	}

	/**
	 * Adds this plugin's eraser of personal data.
	 *
	 * @param mixed $erasers Erasers collected so far.
	 * @return mixed
	 */
	public function add_eraser( mixed $erasers ): mixed {
		if ( is_array( $erasers ) ) {
			$erasers['wp-codebox'] = [
				'eraser_friendly_name' => __( 'Codebox', 'codebox' ),
				'callback'             => [ $this, 'erase' ],
			];
		}
		return $erasers;
	}

	/**
	 * Exports one page of the data stored about a user.
	 *
	 * @param string $email Email address of the user.
	 * @param int    $page  Page number, starting at 1.
	 * @return array{data: list<array<string, mixed>>, done: bool}|\WP_Error
	 */
	public function export( string $email, int $page = 1 ): array|\WP_Error {
		try {
			[ $audit, $runs, $done ] = $this->page( get_user_by( 'email', $email ), $page );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
		$data = [];
		foreach ( $audit as $record ) {
			$data[] = $this->item( 'audit', __( 'Decisions in Codebox', 'codebox' ), (string) ( $record['seq'] ?? '' ), $this->audit_fields( $record ) );
		}
		foreach ( $runs as $run ) {
			$data[] = $this->item( 'runs', __( 'Agent runs', 'codebox' ), (string) ( $run['run_id'] ?? '' ), $this->run_fields( $run ) );
		}
		return [
			'data' => $data,
			'done' => $done,
		];
	}

	/**
	 * Erases nothing; returns messages that state which data stays and why.
	 *
	 * @param string $email Email address of the user.
	 * @param int    $page  Page number, starting at 1.
	 * @return array{items_removed: bool, items_retained: bool, messages: list<string>, done: bool}|\WP_Error
	 */
	public function erase( string $email, int $page = 1 ): array|\WP_Error {
		try {
			[ $audit, $runs, $done ] = $this->page( get_user_by( 'email', $email ), $page );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
		$messages = [];
		if ( [] !== $audit ) {
			/* translators: %d: number of records. */
			$messages[] = sprintf( _n( '%d record of the Codebox audit log names this user by id and login name. It stays: the log is append-only, each record holds the hash of the one before, and it shows who let which change into this site.', '%d records of the Codebox audit log name this user by id and login name. They stay: the log is append-only, each record holds the hash of the one before, and it shows who let which change into this site.', count( $audit ), 'codebox' ), count( $audit ) );
		}
		if ( [] !== $runs ) {
			/* translators: %d: number of runs. */
			$messages[] = sprintf( _n( '%d agent run names this user by id. Its record goes when "wp codebox gc" removes ended runs; its bundle goes when somebody discards it.', '%d agent runs name this user by id. Their records go when "wp codebox gc" removes ended runs; their bundles go when somebody discards them.', count( $runs ), 'codebox' ), count( $runs ) );
		}
		return [
			'items_removed'  => false,
			'items_retained' => [] !== $messages,
			'messages'       => $messages,
			'done'           => $done,
		];
	}

	/**
	 * Returns the audit records and runs of one page that name a user, and whether the page is the last one.
	 *
	 * @param WP_User|false $user User whose data is requested.
	 * @param int           $page Page number, starting at 1.
	 * @return array{list<array<string, mixed>>, list<array<string, mixed>>, bool}
	 * @throws Failure `wp_codebox_state_dir_invalid` when a run cannot be read, because it may be of this user.
	 */
	private function page( WP_User|false $user, int $page ): array {
		if ( false === $user || null !== $this->gate->failure() ) {
			return [ [], [], true ];
		}
		$from = ( max( 1, $page ) - 1 ) * self::PAGE;
		// Sequence numbers of the log have no gaps, so the first number of a page follows from the page number.
		$audit = Artifacts::auditRecords( $this->site->id(), $from, self::PAGE );
		$runs  = Runs::list(
			$this->site->id(),
			[
				'requester' => $user->ID,
				'limit'     => self::PAGE,
				'offset'    => $from,
			]
		);
		if ( ! empty( $runs['unreadable'] ) ) {
			/* translators: %s: error message. */
			throw Failure::because( ErrorCode::StateDirInvalid, Sentence::of( __( 'It is unknown whether all data of this user was found, because a run cannot be read: %s', 'codebox' ), $runs['unreadable'][0]['message'] ) );
		}
		$next = $from + self::PAGE;
		return [
			array_values( array_filter( $audit['records'], fn( array $record ): bool => $this->names( $record, $user ) ) ),
			array_values( $runs['runs'] ),
			$next >= $audit['total'] && $next >= $runs['total'],
		];
	}

	/**
	 * Checks whether an audit record names the user, as requester or as approver.
	 *
	 * @param array<string, mixed> $record Audit record.
	 * @param WP_User              $user   WordPress user.
	 */
	private function names( array $record, WP_User $user ): bool {
		$approver = $record['approver'] ?? null;
		return Requester::is_user( $record['requester'] ?? null, $user->ID ) || Requester::is_user( $approver, $user->ID )
			|| is_string( $approver ) && in_array( $approver, [ $user->user_login, $user->user_email ], true );
	}

	/**
	 * Builds one item of a personal data export.
	 *
	 * @param string                $group Id of the export group.
	 * @param string                $label Title of the export group.
	 * @param string                $id    Id of the item in its group.
	 * @param array<string, string> $facts Values by title.
	 * @return array<string, mixed>
	 */
	private function item( string $group, string $label, string $id, array $facts ): array {
		$rows = [];
		foreach ( array_filter( $facts, static fn( string $value ): bool => '' !== $value ) as $name => $value ) {
			$rows[] = [
				'name'  => $name,
				'value' => esc_html( $value ),
			];
		}
		return [
			'group_id'    => 'wp-codebox-' . $group,
			'group_label' => $label,
			'item_id'     => 'wp-codebox-' . $group . '-' . $id,
			'data'        => $rows,
		];
	}

	/**
	 * Returns the exported fields of an audit record.
	 *
	 * @param array<string, mixed> $record Audit record.
	 * @return array<string, string>
	 */
	private function audit_fields( array $record ): array {
		$approver = $record['approver'] ?? '';
		return [
			__( 'Number', 'codebox' )         => (string) ( $record['seq'] ?? '' ),
			__( 'Time', 'codebox' )           => (string) ( $record['timestamp'] ?? '' ),
			__( 'Event', 'codebox' )          => (string) ( $record['event'] ?? '' ),
			__( 'Login name', 'codebox' )     => (string) ( $record['requester']['login'] ?? '' ),
			__( 'Approver', 'codebox' )       => is_scalar( $approver ) ? (string) $approver : (string) wp_json_encode( $approver ),
			__( 'Artifact', 'codebox' )       => (string) ( $record['artifact_id'] ?? '' ),
			__( 'Run', 'codebox' )            => (string) ( $record['run_id'] ?? '' ),
			__( 'Approved files', 'codebox' ) => implode( ', ', array_filter( (array) ( $record['approved_files'] ?? [] ), 'is_string' ) ),
			__( 'Status', 'codebox' )         => (string) ( $record['status'] ?? '' ),
		];
	}

	/**
	 * Returns the exported fields of a run record.
	 *
	 * @param array<string, mixed> $run Run record.
	 * @return array<string, string>
	 */
	private function run_fields( array $run ): array {
		$texts = array_map( static fn( string $name ): string => (string) ( $run[ $name ] ?? '' ), array_flip( TaskTexts::labels() ) );
		return [
			__( 'Run', 'codebox' )     => (string) ( $run['run_id'] ?? '' ),
			__( 'Time', 'codebox' )    => (string) ( $run['created_at'] ?? '' ),
			...$texts,
			__( 'Outcome', 'codebox' ) => (string) ( $run['outcome'] ?? '' ),
			__( 'Summary', 'codebox' ) => (string) ( $run['summary'] ?? '' ),
		];
	}
}
