<?php
/**
 * Reading the audit log.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$list = static fn( array $input = [] ): mixed => $t->ability( 'list-audit-records', $input );
	$log  = static function () use ( $t ): string {
		$site = ( new WPCodebox\Host\Site( new WPCodebox\Host\InstalledCode() ) )->id();
		return WPCodebox\Native\Extension::info()['state_dir'] . '/sites/' . $site . '/audit.jsonl';
	};

	$t->test(
		'audit: the list returns the newest records without a cursor and pages with one',
		static function () use ( $t, $list ): void {
			$made = $t->made( 'nothing' );
			for ( $i = 0; $i < 3; $i++ ) {
				$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'], 'action' => 'reject', 'reason' => "number $i" ] ) );
			}
			$last = $t->ok( $list( [ 'per_page' => 2 ] ) );
			$t->same( [ 'wp-codebox/audit-record-list/v1', [ 'number 1', 'number 2' ], false, true ], [ $last['schema'], array_column( $last['records'], 'reason' ), $last['more'], $last['chain']['valid'] ] );
			$t->same( [ $last['total'], $last['total'], $last['records'][1]['hash'] ], [ $last['cursor'], $last['records'][1]['seq'], $last['chain']['head'] ] );
			$after = 0;
			$seen  = [];
			do {
				$page  = $t->ok( $list( [ 'after' => $after, 'per_page' => 7 ] ) );
				$seen  = array_merge( $seen, array_column( $page['records'], 'seq' ) );
				$after = $page['cursor'];
			} while ( $page['more'] );
			$t->same( range( 1, $last['total'] ), $seen );
			$t->same( [ [], $last['total'] + 5, false ], array_values( array_intersect_key( $t->ok( $list( [ 'after' => $last['total'] + 5 ] ) ), [ 'records' => 1, 'cursor' => 1, 'more' => 1 ] ) ) );
		}
	);
	$t->test(
		'audit: every record matches its schema, and no record contains a patch',
		static function () use ( $t, $list ): void {
			$t->as( 'administrator' );
			$schema = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/apply-audit.v1.schema.json' ), true );
			$events = [];
			$page   = $t->ok( $list( [ 'after' => 0, 'per_page' => 1000, 'full' => true ] ) );
			foreach ( $page['records'] as $record ) {
				$answer = rest_validate_value_from_schema( $record, $schema, 'record' );
				$t->same( true, is_wp_error( $answer ) ? $answer->get_error_message() . ' ' . json_encode( $record ) : $answer );
				$events[ $record['event'] ] = true;
			}
			$t->true( ! str_contains( (string) json_encode( $page ), 'diff --git' ), 'the log holds a patch' );
			if ( count( $page['records'] ) > 100 ) {
				$t->same( [], array_diff( [ 'apply', 'apply-approved', 'discard', 'stage-apply', 'review', 'import', 'export', 'replay' ], array_keys( $events ) ), 'no record has this event' );
			}
		}
	);
	$t->test(
		'audit: a failure is shown in the language of the user and recorded in English',
		static function () use ( $t, $list ): void {
			$t->made( 'nothing' );
			$made   = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'mounts' => [ [ 'source' => WP_PLUGIN_DIR . '/sample', 'target' => '/workspace/code' ] ], 'agent_command' => 'php agent.php fix' ] ) );
			$german = static fn( string $shown, string $english ): string => '' === $english ? $shown : "Deutsch: $english";
			$failed = static function () use ( $t, $list, $made ): array {
				$error = $t->ability( 'replay-artifact', [ 'artifact_id' => $made['run']['run_id'], 'apply_target' => [ 'directory' => '/nowhere' ] ] );
				$t->error( 'wp_codebox_replay_unavailable', 422, $error );
				$records = $t->ok( $list( [ 'per_page' => 1 ] ) )['records'];
				$t->same( 'wp_codebox_replay_unavailable', $records[0]['error']['code'] );
				return [ $error->get_error_message(), $records[0]['error']['message'] ];
			};
			$english = $failed();
			$t->same( $english[0], $english[1], 'positive control: nothing is translated' );
			$t->contains( 'The run cannot be replayed here; missing: the mount ', $english[0] );
			add_filter( 'gettext_codebox', $german, 10, 2 );
			try {
				$translated = $failed();
			} finally {
				remove_filter( 'gettext_codebox', $german );
			}
			$t->contains( 'Deutsch: The run cannot be replayed here; missing: Deutsch: the mount ', $translated[0] );
			$t->contains( '(Deutsch: The host directory given for the sandbox path ', $translated[0] );
			$t->same( $english[0], $translated[1] );
			$t->same( $english, $failed(), 'the translated text is in a later answer' );
		}
	);
	$t->test(
		'audit: the list omits large fields of records unless full records are requested',
		static function () use ( $t, $list ): void {
			$made  = $t->made();
			$paths = array_column( $made['changed_files'], 'path' );
			for ( $i = 0; $i < 25; $i++ ) {
				$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'], 'action' => 'reject', 'approved_files' => $paths ] ) );
			}
			$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'], 'action' => 'approve', 'approved_files' => $paths ] ) );
			$small = $t->ok( $list() );
			$t->same( 20, count( $small['records'] ) );
			$t->true( $small['total'] >= 25 && $small['chain']['valid'], 'the hash chain was not checked completely' );
			$full  = $t->ok( $list( [ 'full' => true ] ) );
			$large = [];
			foreach ( $full['records'] as $index => $record ) {
				$t->same( $paths, $record['approved_files'] ?? null );
				$large = array_merge( $large, array_keys( $record ) );
				$t->same( [ count( $paths ), $record['hash'] ], [ $small['records'][ $index ]['approved_count'] ?? null, $small['records'][ $index ]['hash'] ] );
				$t->same( [], array_intersect( [ 'approved_files', 'targets', 'result', 'mounts' ], array_keys( $small['records'][ $index ] ) ) );
			}
			$t->same( [], array_diff( [ 'approved_files', 'targets', 'result' ], $large ), 'no full record has these large fields' );
			$t->same( $small, $t->ok( $list( [ 'after' => $small['records'][0]['seq'] - 1 ] ) ), 'a request by cursor returns another page' );
			$rows = static fn( string ...$flags ): array => json_decode( $t->wp( [ 'codebox', 'audit', 'list', '--per-page=1', '--format=json', ...$flags ] )[1], true )['records'];
			$t->same( [ $small['records'][19], $full['records'][19] ], [ ...$rows(), ...$rows( '--full' ) ] );
		}
	);
	$t->test(
		'audit: a broken hash chain is reported in the answer, on STDERR and by exit status 1',
		static function () use ( $t, $list, $log ): void {
			$made = $t->made( 'nothing' );
			$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'], 'action' => 'reject', 'reason' => 'as it was' ] ) );
			$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'], 'action' => 'reject' ] ) );
			$good = (string) file_get_contents( $log() );
			foreach ( [ 'verify', 'list' ] as $verb ) {
				[ $code, , $err ] = $t->wp( [ 'codebox', 'audit', $verb ] );
				$t->same( 0, $code, $err );
			}
			try {
				file_put_contents( $log(), str_replace( 'as it was', 'as it wasn', $good ) );
				$page = $t->ok( $list() );
				$t->same( [ false, true ], [ $page['chain']['valid'], '' !== ( $page['chain']['problem'] ?? '' ) || isset( $page['chain']['broken_at'] ) ] );
				foreach ( [ 'verify', 'list' ] as $verb ) {
					[ $code, $out, $err ] = $t->wp( [ 'codebox', 'audit', $verb, '--quiet' ] );
					$t->same( 1, $code, $err );
					$t->contains( 'The hash chain of the audit log is broken', $err );
				}
				$t->same( [ false ], [ json_decode( $t->wp( [ 'codebox', 'audit', 'verify', '--format=json' ] )[1], true )['valid'] ] );
			} finally {
				file_put_contents( $log(), $good );
			}
			$t->same( true, $t->ok( $list() )['chain']['valid'] );
		}
	);
	$t->test(
		'audit: removed trailing records are detected, also when log and anchor file are removed together',
		static function () use ( $t, $list, $log ): void {
			// Without the anchor option, as on a site without earlier records.
			delete_option( 'wp_codebox_audit_anchor' );
			$made = $t->made( 'nothing' );
			for ( $i = 0; $i < 2; $i++ ) {
				$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'], 'action' => 'reject' ] ) );
			}
			$t->same( [ true, false ], [ [] !== get_option( 'wp_codebox_audit_anchor', [] ), isset( wp_load_alloptions( true )['wp_codebox_audit_anchor'] ) ], 'the anchor option exists and is not autoloaded' );
			$path   = $log();
			$anchor = dirname( $path, 3 ) . '/anchors/' . basename( dirname( $path ) ) . '.json';
			$good   = (string) file_get_contents( $path );
			$verify = static function () use ( $t ): array {
				[ $code, $out, $err ] = $t->wp( [ 'codebox', 'audit', 'verify', '--format=json', '--quiet' ] );
				return [ $code, json_decode( $out, true )['valid'] ?? null, $err ];
			};
			$t->same( [ 0, true ], array_slice( $verify(), 0, 2 ), 'positive control' );
			try {
				file_put_contents( $path, implode( '', array_slice( file( $path ), 0, -2 ) ) );
				[ $code, $valid, $err ] = $verify();
				$t->same( [ 1, false ], [ $code, $valid ] );
				$t->contains( '2 records were removed from the end', $err );
			} finally {
				file_put_contents( $path, $good );
			}
			try {
				rename( $path, "$path.aside" );
				rename( $anchor, "$anchor.aside" );
				[ $code, $valid, $err ] = $verify();
				$t->same( [ 1, false ], [ $code, $valid ] );
				$t->contains( 'records were removed from the end', $err );
				$t->same( 0, $t->ok( $list() )['total'] );
			} finally {
				rename( "$path.aside", $path );
				rename( "$anchor.aside", $anchor );
			}
			$t->same( [ 0, true ], array_slice( $verify(), 0, 2 ), 'the restored files verify' );
		}
	);
	$t->test(
		'audit: the WP-CLI commands page through records, check flags and enforce capabilities',
		static function () use ( $t ): void {
			$made = $t->made( 'nothing' );
			$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'], 'action' => 'reject' ] ) );
			[ $code, $out ] = $t->wp( [ 'codebox', 'audit', 'list', '--per-page=1', '--format=csv', '--fields=event,status,who,run_id' ] );
			$t->same( [ 0, "event,status,who,run_id\nreview,success,admin,{$made['run']['run_id']}\n" ], [ $code, $out ] );
			$page = json_decode( $t->wp( [ 'codebox', 'audit', 'list', '--after=0', '--per-page=2', '--format=json' ] )[1], true );
			$t->same( [ 2, 2, true ], [ count( $page['records'] ), $page['cursor'], $page['more'] ] );
			$t->contains( '--after=2', $t->wp( [ 'codebox', 'audit', 'list', '--after=0', '--per-page=2' ] )[2] );
			$t->same( $page['total'] . '', explode( ' ', $t->wp( [ 'codebox', 'audit', 'list', '--per-page=1', '--format=ids' ] )[1] )[0] );
			$t->same( 1, preg_match( '/^[0-9a-f]{64}\n$/', $t->wp( [ 'codebox', 'audit', 'verify', '--porcelain' ] )[1] ) );
			foreach ( [ '--per-page=0', '--per-page=1001', '--per-page=x', '--after=-1' ] as $flag ) {
				[ $code, , $err ] = $t->wp( [ 'codebox', 'audit', 'list', $flag ] );
				$t->same( 1, $code );
				$t->contains( '(wp_codebox_input_invalid)', $err );
			}
			$t->same( 126, $t->wp( [ 'codebox', 'audit', 'list', '--user=editor' ] )[0] );
			$t->same( 0, $t->wp( [ 'codebox', 'audit', 'list', '--user=admin' ] )[0], 'positive control' );
		}
	);
};
