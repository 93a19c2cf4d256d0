<?php
/**
 * Version and configuration of the stand-in extension; environment variables can override both.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Extension {

	public static function version(): string {
		return (string) ( getenv( 'WP_CODEBOX_FAKE_VERSION' ) ?: '0.1.0' );
	}

	public static function contractDigest(): string {
		return (string) ( getenv( 'WP_CODEBOX_FAKE_DIGEST' ) ?: ( require WP_PLUGIN_DIR . '/wp-codebox/abilities/manifest.php' )['contract_digest'] );
	}

	public static function info(): array {
		return [
			'version'     => self::version(),
			'state_dir'   => Bundles::root(),
			'max_runs'    => 8,
			'max_groups'  => 2,
			'max_limits'  => [ 'wall_clock_ms' => 28800000, 'processes' => null, 'memory_bytes' => 16 << 30, 'disk_bytes' => 16 << 30, 'output_bytes' => null ],
			'default_ceilings' => [ 'wall_clock_ms' => 3600000, 'processes' => null, 'memory_bytes' => 2 << 30, 'disk_bytes' => 2 << 30, 'output_bytes' => null ],
			'agents'      => [ [ 'name' => 'codex', 'title' => 'Codex', 'apis' => [ 'openai-chat' ] ] ],
			'provider_keys' => array_values( array_filter( explode( ' ', (string) getenv( 'WP_CODEBOX_FAKE_PROVIDER_KEYS' ) ) ) ),
			'mount_roots' => array_values( array_filter( explode( ':', (string) getenv( 'WP_CODEBOX_FAKE_MOUNT_ROOTS' ) ) ) ),
		];
	}

	public static function gc( string $site, array $options = [] ): array {
		return [
			'schema'      => 'wp-codebox/gc/v1',
			'success'     => true,
			'dry_run'     => $options['dry_run'] ?? false,
			'settled'     => 1,
			'alive'       => 0,
			'kept'        => 2,
			'kept_bytes'  => 10,
			'freed_bytes' => $options['max_age_seconds'] ?? 0,
			'removed'     => [
				[
					'kind'   => 'run',
					'id'     => 'run_' . str_repeat( '0', 32 ),
					'site'   => $site,
					'bytes'  => $options['max_age_seconds'] ?? 0,
					'reason' => 'age',
				],
			],
			'failed'      => [],
			'stayed'      => [],
		];
	}

	public static function doctor(): array {
		$level = (string) ( getenv( 'WP_CODEBOX_FAKE_LEVEL' ) ?: 'full' );
		if ( 'unknown' === $level ) {
			throw Exception::make( 'wp_codebox_state_dir_invalid', 'The runner is gone.' );
		}
		return [
			'schema'    => 'wp-codebox/doctor/v1',
			'status'    => 'warning',
			'level'     => $level,
			'isolation' => [
				'schema'      => 'wp-codebox/isolation-report/v1',
				'level'       => $level,
				'kernel'      => '6.18.0',
				'landlockAbi' => 7,
				'axes'        => [
					[
						'axis'      => 'files',
						'requested' => 'enforced',
						'enforced'  => 'full' === $level ? 'enforced' : 'not-enforced',
						'by'        => 'mount namespace',
						'evidence'  => 'root shows <b>only</b> usr',
					],
					[
						'axis'      => 'memory',
						'requested' => 'enforced',
						'enforced'  => 'best-effort',
						'by'        => 'RLIMIT_DATA',
						'evidence'  => 'the sum is polled',
					],
				],
			],
			'checks'    => [
				[
					'id'      => 'namespaces',
					'status'  => 'ok',
					'message' => 'User namespaces work.',
				],
				[
					'id'      => 'cgroup',
					'status'  => 'warning',
					'message' => 'No cgroup is delegated; memory is best effort.',
					'fix'     => 'Install the service unit.',
				],
			],
		];
	}
}
