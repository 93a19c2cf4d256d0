<?php
/**
 * `wp codebox commands`, `policy`, `doctor` and the help texts.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$t->test(
		'wp codebox commands lists the command ids and refuses a user without capability',
		static function () use ( $t ): void {
			[ $code, $out ] = $t->wp( [ 'codebox', 'commands', '--porcelain' ] );
			$ids            = explode( "\n", rtrim( $out ) );
			$t->same( [ 0, 'inspect-mounted-inputs', 'command-agent-run' ], [ $code, $ids[0], $ids[1] ] );
			$t->same( [], array_diff( [ 'wordpress.run-php', 'wordpress.wp-cli' ], $ids ) );
			$t->same( (string) count( array_unique( $ids ) ), trim( $t->wp( [ 'codebox', 'commands', '--format=count' ] )[1] ) );
			$rows = json_decode( $t->wp( [ 'codebox', 'commands', '--format=json', '--fields=id,policyRequirement' ] )[1], true );
			$t->same( [ 'id' => 'command-agent-run', 'policyRequirement' => 'Runtime policy commands must include command-agent-run' ], $rows[1] );
			$t->contains( 'wordpress.run-php', $t->wp( [ 'codebox', 'commands' ] )[1] );
			$t->same( 126, $t->wp( [ 'codebox', 'commands', '--user=editor' ] )[0] );
		}
	);
	$t->test(
		'wp codebox policy show prints the default policy, with the commands of --commands if given',
		static function () use ( $t ): void {
			[ $code, $out ] = $t->wp( [ 'codebox', 'policy', 'show', '--format=json' ] );
			$policy         = json_decode( $out, true );
			$t->same( [ 0, 'deny', 'readwrite-mounts', [ 'command-agent-run' ], 'none', 'never' ], [ $code, $policy['network'], $policy['filesystem'], $policy['commands'], $policy['secrets'], $policy['approvals'] ] );
			$t->same( "field,value\nnetwork,deny\nfilesystem,readwrite-mounts\ncommands,\"wordpress.run-php, wordpress.wp-cli\"\nsecrets,none\napprovals,never\n", $t->wp( [ 'codebox', 'policy', 'show', '--commands=wordpress.run-php,wordpress.wp-cli', '--format=csv' ] )[1] );
		}
	);
	$t->test(
		'wp codebox policy validate accepts a valid policy and refuses an unenforceable or invalid one',
		static function () use ( $t ): void {
			$good = $t->wp( [ 'codebox', 'policy', 'show', '--porcelain' ] )[1];
			$file = getenv( 'TEST_WORK' ) . '/policy.json';
			file_put_contents( $file, $good );
			foreach ( [ [ $file ], [ '--input-json=' . trim( $good ) ] ] as $how ) {
				[ $code, $out, $err ] = $t->wp( array_merge( [ 'codebox', 'policy', 'validate' ], $how ) );
				$t->same( [ 0, '' ], [ $code, $out ], $err );
				$t->contains( 'The policy is valid and can be enforced here.', $err );
			}
			$t->same( 0, $t->wp( [ 'codebox', 'policy', 'validate', '-' ], [], [ 'stdin' => $good ] )[0] );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'policy', 'validate', '--input-json=' . str_replace( '"deny"', '"allow"', trim( $good ) ), '--porcelain' ] );
			$t->same( [ 126, "unenforceable\n" ], [ $code, $out ] );
			$t->contains( 'would be refused', $err );
			[ $code, $out ] = $t->wp( [ 'codebox', 'policy', 'validate', '--input-json={}', '--format=json' ] );
			$t->same( 126, $code );
			$t->contains( 'invalid-network', $out );
			foreach ( [ [], [ $file, '--input-json={}' ], [ '/nowhere.json' ], [ '--input-json=[]' ] ] as $how ) {
				[ $code, , $err ] = $t->wp( array_merge( [ 'codebox', 'policy', 'validate' ], $how ) );
				$t->same( 1, $code );
				$t->contains( '(wp_codebox_input_invalid)', $err );
			}
		}
	);
	$t->test(
		'wp codebox doctor reports the isolation level and the status of its checks',
		static function () use ( $t ): void {
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'doctor', '--format=json' ] );
			$document             = json_decode( $out, true );
			$t->same( [ 0, 'full', 'wp-codebox/doctor/v1' ], [ $code, $document['level'] ?? '', $document['schema'] ?? '' ], $err . $out );
			$rows = array_column( $document['checks'], 'status', 'id' );
			$t->same( [ 'ok', 'ok' ], [ $rows['wordpress'], $rows['extension'] ] );
			[ , $out, $err ] = $t->wp( [ 'codebox', 'doctor' ] );
			$t->contains( 'The extension is version 0.1.0 and fits the plugin.', $out );
			$t->contains( 'Isolation level: full.', $err );
			$t->true( in_array( trim( $t->wp( [ 'codebox', 'doctor', '--porcelain' ] )[1] ), [ 'ok', 'warning' ], true ), 'the status is neither ok nor warning' );
		}
	);
	$t->test(
		'wp codebox gc prints a document that matches its schema and refuses an invalid age',
		static function () use ( $t ): void {
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'gc', '--max-age=2h', '--dry-run', '--format=json' ] );
			$document             = json_decode( $out, true );
			$t->same( [ 0, 'wp-codebox/gc/v1', true ], [ $code, $document['schema'] ?? '', $document['dry_run'] ?? null ], $err . $out );
			$schema = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/gc.v1.schema.json' ), true );
			$t->same( true, rest_validate_value_from_schema( $document, $schema, 'gc' ), $out );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'gc', '--max-age=2h' ] );
			$t->same( 0, $code, $err );
			$t->contains( 'kept.', $err );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'gc', '--max-age=soon' ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_input_invalid)', $err );
		}
	);
	foreach ( [ [], [ 'run-agent-task' ], [ 'run-agent-task-batch' ], [ 'run-agent-task-fanout' ], [ 'run-runtime-task' ], [ 'run-runtime-package' ], [ 'run-wordpress-workload' ], [ 'run-fuzz-suite' ], [ 'resolve-runtime-requirements' ], [ 'runs' ], [ 'runs', 'list' ], [ 'runs', 'get' ], [ 'runs', 'events' ], [ 'runs', 'cancel' ], [ 'artifacts' ], [ 'artifacts', 'list' ], [ 'artifacts', 'get' ], [ 'artifacts', 'inspect' ], [ 'artifacts', 'diff' ], [ 'artifacts', 'preflight-apply' ], [ 'artifacts', 'apply' ], [ 'artifacts', 'discard' ], [ 'commands' ], [ 'policy' ], [ 'policy', 'show' ], [ 'policy', 'validate' ], [ 'doctor' ], [ 'gc' ] ] as $command ) {
		$t->test(
			'wp help prints the synopsis of codebox ' . implode( ' ', $command ),
			static function () use ( $t, $command ): void {
				[ $code, $out, $err ] = $t->wp( array_merge( [ 'help', 'codebox' ], $command ), [ 'PAGER' => 'cat', 'TERM' => 'dumb' ] );
				$t->same( 0, $code, $err );
				$t->contains( 'SYNOPSIS', $out );
				if ( ! in_array( $command, [ [ 'runs' ], [ 'artifacts' ], [ 'policy' ] ], true ) ) {
					$t->contains( 'EXAMPLES', $out );
				}
			}
		);
	}
};
