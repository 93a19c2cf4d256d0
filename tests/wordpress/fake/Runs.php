<?php
/**
 * Registry of the runs of the stand-in extension.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

use WPCodebox\Run\TaskTexts;

final class Runs {

	public static function list( string $site, array $filter = [] ): array {
		$unknown = array_diff( array_keys( $filter ), [ 'status', 'limit', 'offset', 'requester', 'prefix' ] );
		if ( [] !== $unknown || ( $filter['limit'] ?? 50 ) > 200 ) {
			throw Exception::make( 'wp_codebox_input_invalid', 'There is no such filter.' );
		}
		$views = array_map( static fn( string $directory ): array => self::view( $directory, false ), glob( self::directory( $site ) . '/run_*' ) ?: [] );
		if ( isset( $filter['status'] ) ) {
			$views = array_filter( $views, static fn( array $view ): bool => $view['status'] === $filter['status'] );
		}
		if ( isset( $filter['requester'] ) ) {
			$views = array_filter( $views, static fn( array $view ): bool => \WPCodebox\Requester::is_user( $view['provenance']['requester'] ?? null, $filter['requester'] ) && str_starts_with( $view['run_id'], $filter['prefix'] ?? '' ) );
		}
		usort( $views, static fn( array $a, array $b ): int => [ $b['created_at'], $b['run_id'] ] <=> [ $a['created_at'], $a['run_id'] ] );
		return [
			'schema' => 'wp-codebox/run-list/v1',
			'total'  => count( $views ),
			'runs'   => array_slice( $views, $filter['offset'] ?? 0, $filter['limit'] ?? 50 ),
		];
	}

	public static function get( string $site, string $reference ): array {
		return self::view( self::find( $site, $reference ), true );
	}

	public static function events( string $site, string $reference, int $after = 0, int $limit = 200 ): array {
		$directory = self::find( $site, $reference );
		$status    = self::is_alive( $directory ) ? 'running' : 'ended';
		$later     = array_slice( self::journal( $directory ), $after );
		$events    = array_slice( $later, 0, $limit );
		return [
			'schema' => 'wp-codebox/run-events/v1',
			'run_id' => basename( $directory ),
			'events' => $events,
			'cursor' => [] === $events ? $after : end( $events )['seq'],
			'more'   => count( $later ) > count( $events ),
			'status' => $status,
		];
	}

	public static function cancel( string $site, string $reference ): array {
		$directory = self::find( $site, $reference );
		$alive     = self::is_alive( $directory );
		if ( $alive ) {
			touch( $directory . '/cancel' );
		}
		return [
			'schema' => 'wp-codebox/run-cancellation/v1',
			'run_id' => basename( $directory ),
			'answer' => $alive ? 'requested' : 'already_ended',
			'status' => $alive ? 'running' : 'ended',
		];
	}

	public static function directory( string $site ): string {
		return Bundles::root() . '/sites/' . $site . '/runs';
	}

	public static function alive( string $site ): array {
		return array_filter( glob( self::directory( $site ) . '/run_*' ) ?: [], [ self::class, 'is_alive' ] );
	}

	public static function is_alive( string $directory ): bool {
		clearstatcache();
		if ( is_file( $directory . '/result.json' ) ) {
			return false;
		}
		$lease = is_file( $directory . '/lease' ) ? fopen( $directory . '/lease', 'r' ) : false;
		return false !== $lease && ! flock( $lease, LOCK_SH | LOCK_NB );
	}

	public static function journal( string $directory ): array {
		$lines = (array) file( $directory . '/events.jsonl' );
		// Skips a last line that is not written completely.
		return array_map( static fn( string $line ): array => json_decode( $line, true ), array_filter( $lines, static fn( string $line ): bool => str_ends_with( $line, "\n" ) ) );
	}

	private static function find( string $site, string $reference ): string {
		$found = array_filter( glob( self::directory( $site ) . '/run_*' ) ?: [], static fn( string $directory ): bool => str_starts_with( basename( $directory ), $reference ) );
		if ( [] === $found ) {
			throw Exception::make( 'wp_codebox_run_not_found', sprintf( 'No run has the id %s; list them.', $reference ) );
		}
		if ( count( $found ) > 1 ) {
			throw Exception::make( 'wp_codebox_run_ambiguous', sprintf( '%s fits more than one run; give more of it.', $reference ) );
		}
		return (string) reset( $found );
	}

	private static function view( string $directory, bool $whole ): array {
		$status  = self::is_alive( $directory ) ? 'running' : 'ended';
		$request = json_decode( (string) file_get_contents( $directory . '/request.json' ), true );
		$result  = is_file( $directory . '/result.json' ) ? json_decode( (string) file_get_contents( $directory . '/result.json' ), true ) : null;
		$created = (string) file_get_contents( $directory . '/created' );
		$view    = [
			'schema'     => 'wp-codebox/run/v1',
			'run_id'     => basename( $directory ),
			'status'     => $status,
			'mode'       => is_file( $directory . '/detached' ) ? 'detached' : 'attached',
			'created_at' => $created,
			'updated_at' => $created,
			'salvaged'   => false,
			'last_event' => count( self::journal( $directory ) ),
			'provenance' => $request['provenance'],
		] + array_intersect_key( $request['task_input'], array_flip( TaskTexts::NAMES ) );
		if ( 'ended' === $status && null !== $result ) {
			$view += [
				'outcome'   => $result['outcome'],
				'summary'   => $result['summary'],
				'bundle_id' => $result['artifacts']['bundle_id'],
			] + [
				'summary_detail' => $result['summary_detail'],
			];
			$view += $whole ? array_intersect_key( $result, array_flip( [ 'session_status', 'success', 'exit_status' ] ) ) : [];
			$view += $whole ? [ 'result' => array_diff_key( $result, array_flip( [ 'session_status', 'success', 'exit_status' ] ) ) ] : [];
		} elseif ( 'ended' === $status ) {
			$view['error'] = [
				'code'    => 'wp_codebox_runner_unavailable',
				'message' => 'The supervisor died.',
			];
		}
		return $view;
	}
}
