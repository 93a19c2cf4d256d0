<?php
/**
 * Exporter and eraser of personal data.
 */

declare(strict_types=1);

use WPCodebox\Admin\PersonalData;
use WPCodebox\AuditTrail;
use WPCodebox\ExtensionGate;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Extension;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$site = new Site( new InstalledCode() );
	$call = static function ( string $filter, string $email ) use ( $t ): array {
		$row   = apply_filters( $filter, [] )['wp-codebox'];
		$pages = [];
		do {
			$pages[] = $t->ok( ( $row['callback'] )( $email, count( $pages ) + 1 ) );
		} while ( ! end( $pages )['done'] && count( $pages ) < 50 );
		return $pages;
	};

	$t->test(
		'the exporter returns all decisions and runs of a user over all pages, and none of other users',
		static function () use ( $t, $site, $call ): void {
			$audit = new AuditTrail( $site );
			$t->as( 'editor' );
			$before = count( array_merge( ...array_column( $call( 'wp_privacy_personal_data_exporters', 'editor@example.org' ), 'data' ) ) );
			for ( $number = 0; $number < 130; $number++ ) {
				$t->as( 0 === $number % 2 ? 'editor' : 'administrator' );
				// Real run ids are hexadecimal, so these ids match none of them.
				$audit->write( 'discard', [ 'run_id' => 'run_number_' . $number ] );
			}
			$t->as( 'administrator' );
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/privacy-agent.php' );
			$t->as( 'editor' );
			$run = $t->ok(
				WP_Codebox_API::run_agent_task(
					[
						'goal'          => 'Privacy <b>goal</b>',
						'plugin'        => 'sample',
						'agent_command' => 'php privacy-agent.php nothing',
					]
				)
			);
			unlink( WP_PLUGIN_DIR . '/sample/privacy-agent.php' );
			$pages = $call( 'wp_privacy_personal_data_exporters', 'editor@example.org' );
			$items = array_merge( ...array_column( $pages, 'data' ) );
			$t->true( count( $pages ) > 1, 'the export has only one page' );
			$t->same( $before + 66, count( $items ) );
			$t->same( count( $items ), count( array_unique( array_column( $items, 'item_id' ) ) ) );
			$text = (string) json_encode( $items );
			$t->true( str_contains( $text, 'run_number_128' ) && ! str_contains( $text, 'run_number_129' ), 'the export contains a record of another user' );
			$t->contains( $run['run']['run_id'], $text );
			$t->true( ! str_contains( $text, '<b>' ), 'a goal is not escaped' );
			$t->same( [ [ 'data' => [], 'done' => true ] ], $call( 'wp_privacy_personal_data_exporters', 'nobody@example.org' ) );
		}
	);
	$t->test(
		'the eraser removes nothing, reports what is retained and why, and leaves the audit log valid',
		static function () use ( $t, $site, $call ): void {
			$total = Artifacts::auditRecords( $site->id(), 0, 1 )['total'];
			$pages = $call( 'wp_privacy_personal_data_erasers', 'editor@example.org' );
			$t->same( [ false ], array_values( array_unique( array_column( $pages, 'items_removed' ) ) ) );
			$t->true( in_array( true, array_column( $pages, 'items_retained' ), true ), 'no page reports retained items' );
			$said = implode( ' ', array_merge( ...array_column( $pages, 'messages' ) ) );
			$t->contains( 'append-only', $said );
			$t->contains( 'wp codebox gc', $said );
			$log = Artifacts::auditRecords( $site->id(), 0, 1 );
			$t->same( [ $total, true ], [ $log['total'], $log['chain']['valid'] ] );
			$t->same( [ [ 'items_removed' => false, 'items_retained' => false, 'messages' => [], 'done' => true ] ], $call( 'wp_privacy_personal_data_erasers', 'nobody@example.org' ) );
		}
	);
	if ( str_starts_with( $t->phase, 'native' ) ) {
		$t->test(
			'exporter and eraser report an error while a run, which may be of the user, cannot be read',
			static function () use ( $t, $site, $call ): void {
				$directory = Extension::info()['state_dir'] . '/sites/' . $site->id() . '/runs/run_' . str_repeat( 'd', 32 );
				mkdir( $directory, 0700 );
				file_put_contents( $directory . '/run.json', '{' );
				try {
					foreach ( [ 'wp_privacy_personal_data_exporters', 'wp_privacy_personal_data_erasers' ] as $filter ) {
						$error = ( apply_filters( $filter, [] )['wp-codebox']['callback'] )( 'editor@example.org', 1 );
						$t->error( 'wp_codebox_state_dir_invalid', 503, $error );
						$t->contains( 'cannot be read and stays as it is', $error->get_error_message() );
					}
				} finally {
					unlink( $directory . '/run.json' );
					rmdir( $directory );
				}
				$t->true( count( $call( 'wp_privacy_personal_data_exporters', 'editor@example.org' ) ) > 0, 'positive control' );
			}
		);
	}
	$t->test(
		'the plugin suggests a text for the privacy policy',
		static function () use ( $t, $site ): void {
			require_once ABSPATH . 'wp-admin/includes/admin.php';
			require_once ABSPATH . 'wp-admin/includes/class-wp-privacy-policy-content.php';
			set_current_screen( 'dashboard' );
			// Runs only the callback of this plugin on admin_init: core's callbacks would request updates over the network.
			$others = $GLOBALS['wp_filter']['admin_init'];
			remove_all_actions( 'admin_init' );
			( new PersonalData( new ExtensionGate( \WPCodebox\VERSION, '' ), $site ) )->register();
			do_action( 'admin_init' );
			$GLOBALS['wp_filter']['admin_init'] = $others;
			$texts = array_column( WP_Privacy_Policy_Content::get_suggested_policy_text(), 'policy_text', 'plugin_name' );
			$t->contains( 'audit log', $texts['Codebox'] ?? '' );
		}
	);
};
