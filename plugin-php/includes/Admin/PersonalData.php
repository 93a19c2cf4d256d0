<?php
/**
 * Personal data: exporter, eraser and what the privacy policy should say.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use Throwable;
use WP_User;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Runs;

defined( 'ABSPATH' ) || exit;

/**
 * Two places of the state directory name users: the audit log (id and login name of who decided)
 * and the record of a run (id of who asked). Both are exported. Neither is erased: the log is a
 * chain of hashes in which no link can be taken out, and it is what shows who let a change into
 * the site; the eraser says so. Of other blogs of a network nothing is read.
 */
final class PersonalData {

	/** Records looked at per call; core calls again for the next page. */
	private const PAGE = 100;

	/**
	 * Wires exporter and eraser.
	 *
	 * @param ExtensionGate $gate Extension check.
	 * @param Site          $site This site.
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

	/** Suggests what the site's privacy policy should say of runs and of the audit log. */
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
	 * Adds the exporter.
	 *
	 * @param mixed $exporters Exporters so far.
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
	 * Adds the eraser.
	 *
	 * @param mixed $erasers Erasers so far.
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
	 * One page of what is kept about a user.
	 *
	 * @param string $email Address.
	 * @param int    $page  From 1.
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
	 * Erases nothing, and says what stays and why.
	 *
	 * @param string $email Address.
	 * @param int    $page  From 1.
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
	 * Records and runs of a user on one page, and whether it was the last one.
	 *
	 * @param WP_User|false $user Whose.
	 * @param int           $page From 1.
	 * @return array{list<array<string, mixed>>, list<array<string, mixed>>, bool}
	 */
	private function page( WP_User|false $user, int $page ): array {
		if ( false === $user || null !== $this->gate->failure() ) {
			return [ [], [], true ];
		}
		$from = ( max( 1, $page ) - 1 ) * self::PAGE;
		// Numbers of the log are without gaps, so the page is known by its number.
		$audit = Artifacts::auditRecords( $this->site->id(), $from, self::PAGE );
		$runs  = Runs::list(
			$this->site->id(),
			[
				'limit'  => self::PAGE,
				'offset' => $from,
			]
		);
		$next  = $from + self::PAGE;
		return [
			array_values( array_filter( $audit['records'], fn( array $record ): bool => $this->names( $record, $user ) ) ),
			array_values( array_filter( $runs['runs'], fn( array $run ): bool => $this->is_user( $run['provenance']['requester'] ?? null, $user ) ) ),
			$next >= $audit['total'] && $next >= $runs['total'],
		];
	}

	/**
	 * Whether an audit record names the user, as requester or as approver.
	 *
	 * @param array<string, mixed> $record Record.
	 * @param WP_User              $user   User.
	 */
	private function names( array $record, WP_User $user ): bool {
		$approver = $record['approver'] ?? null;
		return $this->is_user( $record['requester'] ?? null, $user ) || $this->is_user( $approver, $user )
			|| is_string( $approver ) && in_array( $approver, [ $user->user_login, $user->user_email ], true );
	}

	/**
	 * Whether a requester is the user.
	 *
	 * @param mixed   $requester `{kind, id, login?}`.
	 * @param WP_User $user      User.
	 */
	private function is_user( mixed $requester, WP_User $user ): bool {
		return is_array( $requester ) && 'user' === ( $requester['kind'] ?? '' ) && $user->ID === ( $requester['id'] ?? 0 );
	}

	/**
	 * One item of the export.
	 *
	 * @param string                $group Group.
	 * @param string                $label Title of the group.
	 * @param string                $id    Id in the group.
	 * @param array<string, string> $facts Title to value.
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
	 * What an audit record says.
	 *
	 * @param array<string, mixed> $record Record.
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
	 * What the record of a run says.
	 *
	 * @param array<string, mixed> $run Run.
	 * @return array<string, string>
	 */
	private function run_fields( array $run ): array {
		return [
			__( 'Run', 'codebox' )     => (string) ( $run['run_id'] ?? '' ),
			__( 'Time', 'codebox' )    => (string) ( $run['created_at'] ?? '' ),
			__( 'Goal', 'codebox' )    => (string) ( $run['goal'] ?? '' ),
			__( 'Outcome', 'codebox' ) => (string) ( $run['outcome'] ?? '' ),
			__( 'Summary', 'codebox' ) => (string) ( $run['summary'] ?? '' ),
		];
	}
}
