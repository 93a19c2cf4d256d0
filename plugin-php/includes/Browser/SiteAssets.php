<?php
/**
 * Assets of browser sessions that this site serves itself.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Failure;

use const WPCodebox\VERSION;

defined( 'ABSPATH' ) || exit;

/**
 * Returns addresses and hashes of engine, runtime, core archive and code archives for a session. Nothing is loaded from another
 * host, unless the constant `WP_CODEBOX_PLAYGROUND_HOST` names one.
 */
final class SiteAssets implements SessionAssets {

	/** Seconds that links to archives are valid; the session itself may end earlier. */
	private const LINK_SECONDS = DAY_IN_SECONDS;

	/**
	 * Creates the assets with their dependencies.
	 *
	 * @param RuntimeFiles $runtime Installed runtime files, and the files of the plugin.
	 * @param BrowserHost  $host    Host that the sandbox is loaded from.
	 * @param CoreArchive  $core    Archive of core.
	 * @param SeedArchives $seeds   Archives of plugins, themes and bundles.
	 * @param PrivateFiles $files   Store of the archives.
	 */
	public function __construct(
		private readonly RuntimeFiles $runtime,
		private readonly BrowserHost $host,
		private readonly CoreArchive $core,
		private readonly SeedArchives $seeds,
		private readonly PrivateFiles $files
	) {}

	/**
	 * Returns URLs and sources of the engine.
	 *
	 * @param string $scope      Name of the sandbox in its URLs.
	 * @param string $session_id Id of the session.
	 * @return array{client_module_url: string, remote_url: string, cors_proxy_url: string, isolation: string, provenance: array<string, mixed>, codebox: array<string, mixed>}
	 * @throws Failure `wp_codebox_browser_assets_missing`, `wp_codebox_browser_host_invalid` or one of the archives.
	 */
	public function contract( string $scope, string $session_id ): array {
		$isolation = $this->host->isolation();
		$outside   = $this->host->outside();
		if ( '' !== $outside ) {
			return [
				'client_module_url' => $outside . '/client/index.js',
				'remote_url'        => $outside . '/remote.html',
				'cors_proxy_url'    => '',
				'isolation'         => $isolation,
				'provenance'        => [
					'source'  => 'outside-host',
					'host'    => $outside,
					'setting' => BrowserHost::OUTSIDE,
				],
				'codebox'           => [],
			];
		}
		$engine = $this->runtime->engine;
		$engine->check();
		$this->runtime->check();
		$origin = $this->host->origin();
		( new SeparateHostFile( $engine->directory() ) )->put( $origin );
		$list   = $engine->runtime();
		$core   = $this->core->current();
		return [
			'client_module_url' => $engine->url( 'client.js' ),
			'remote_url'        => '' === $origin ? $engine->url( 'remote.html' ) : $engine->url_on( 'remote.html', $origin ),
			'cors_proxy_url'    => '',
			'isolation'         => $isolation,
			'provenance'        => [
				'source'    => 'site',
				'plugin'    => VERSION,
				'php'       => $list['php'],
				'packages'  => $list['packages'],
				'runtime'   => $list['version'],
				'wordpress' => $core['version'],
				'theme'     => $core['theme'],
			],
			'codebox'           => [
				'core'       => [
					'url'    => $this->link( $core['sha256'], $session_id ),
					'sha256' => $core['sha256'],
					'bytes'  => $core['bytes'],
					'key'    => $core['key'],
				],
				'runtime'    => [
					'base_url' => $this->runtime->url(),
					'files'    => array_values( $list['files'] ),
				],
				'isolation'  => $isolation,
				'statics'    => [
					'includes' => includes_url(),
					'admin'    => admin_url(),
					'themes'   => trailingslashit( get_theme_root_uri( $core['theme'] ) ),
					'root'     => trailingslashit( site_url() ),
				],
				'session_id' => $session_id,
			],
		];
	}

	/**
	 * Packs the code that a session starts with.
	 *
	 * @param list<array{kind: string, slug: string}> $roots      Plugins, themes and bundles.
	 * @param string                                  $session_id Id of the session.
	 * @return list<array{target: string, path: string, archive: array{url: string, sha256: string, bytes: int}, overlay?: array<string, mixed>}>
	 * @throws Failure When one is unknown, too large, or does not fit any more.
	 */
	public function roots( array $roots, string $session_id ): array {
		$linked = fn( array $archive ): array => [ 'url' => $this->link( $archive['sha256'], $session_id ) ] + $archive;
		return array_map(
			static fn( array $row ): array => array_replace( $row, array_map( $linked, array_intersect_key( $row, array_flip( [ 'archive', 'overlay' ] ) ) ) ),
			$this->seeds->pack( $roots )
		);
	}

	/**
	 * Returns a link to a stored file.
	 *
	 * @param string $sha256     Its sha256.
	 * @param string $session_id Id of the session.
	 */
	private function link( string $sha256, string $session_id ): string {
		return $this->files->url( $sha256, $session_id, time() + self::LINK_SECONDS );
	}
}
