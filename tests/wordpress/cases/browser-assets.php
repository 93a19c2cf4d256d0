<?php
/**
 * What browser sandboxes are served from: engine, runtime files, isolation, contract, page, links, settings and command.
 */

declare(strict_types=1);

use WPCodebox\Admin\BrowserFields;
use WPCodebox\Admin\BrowserHealth;
use WPCodebox\Browser\ArchiveWriter;
use WPCodebox\Browser\BrowserHost;
use WPCodebox\Browser\BrowserPage;
use WPCodebox\Browser\BundleSeed;
use WPCodebox\Browser\CoreArchive;
use WPCodebox\Browser\EngineFiles;
use WPCodebox\Browser\PrivateDirectory;
use WPCodebox\Browser\PrivateFiles;
use WPCodebox\Browser\RuntimeFiles;
use WPCodebox\Browser\RuntimeInstall;
use WPCodebox\Browser\SandboxLinks;
use WPCodebox\Browser\SeedArchives;
use WPCodebox\Browser\SiteAssets;
use WPCodebox\Capabilities;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	require_once ABSPATH . 'wp-admin/includes/admin.php';
	$plugin   = WP_PLUGIN_DIR . '/wp-codebox/wp-codebox.php';
	$folder   = dirname( $plugin ) . '/' . EngineFiles::DIRECTORY;
	$contents = [
		'php-jspi.bin'                     => str_repeat( 'jspi ', 50000 ),
		'php-asyncify.bin'                 => str_repeat( 'asyncify ', 20000 ),
		'sqlite-database-integration.zip' => 'sqlite',
	];
	$engine   = new EngineFiles( $plugin );
	$runtime  = new RuntimeFiles( $engine );
	$install  = new RuntimeInstall( $runtime );
	$work     = (string) getenv( 'TEST_WORK' );
	// Puts stub files of the engine into the plugin; their list names the contents above.
	$engines  = static function () use ( $folder, $contents ): void {
		wp_mkdir_p( $folder );
		foreach ( [ 'client.js', 'remote.html', 'remote.js', 'worker.js', 'sw.js', 'workbench.js', 'workbench.css', 'php-jspi.js', 'php-asyncify.js' ] as $name ) {
			file_put_contents( "$folder/$name", "/* $name */" );
		}
		$rows = [];
		foreach ( $contents as $name => $text ) {
			$rows[] = [ 'name' => $name, 'bytes' => strlen( $text ), 'sha256' => hash( 'sha256', $text ) ];
		}
		file_put_contents( "$folder/runtime.json", (string) wp_json_encode( [ 'schema' => 'wp-codebox/browser-runtime-files/v1', 'php' => '8.3.99', 'packages' => '3.1.55', 'files' => $rows ] ) );
	};
	// Makes a zip archive; a list entry is name and contents, so that names can repeat.
	$zip      = static function ( array $entries, ?callable $change = null ) use ( $work ): string {
		$path    = $work . '/archive-' . bin2hex( random_bytes( 4 ) ) . '.zip';
		$archive = new ZipArchive();
		$archive->open( $path, ZipArchive::CREATE );
		foreach ( $entries as $name => $text ) {
			$archive->addFromString( (string) $name, $text );
		}
		$change && $change( $archive );
		$archive->close();
		return $path;
	};
	$code     = static function ( callable $body ): string {
		try {
			$body();
			return 'ok';
		} catch ( Failure $failure ) {
			return $failure->error_code;
		}
	};
	$says     = static function ( callable $body ): string {
		try {
			$body();
			return '';
		} catch ( Failure $failure ) {
			return $failure->getMessage();
		}
	};
	$left     = static fn(): array => array_values( array_diff( is_dir( $runtime->base() ) ? (array) scandir( $runtime->base() ) : [], [ '.', '..' ] ) );
	$assets   = static function ( BrowserHost $host ) use ( $runtime ): SiteAssets {
		$site      = new Site( new InstalledCode() );
		$directory = new PrivateDirectory( $site );
		$files     = new PrivateFiles( $directory, $site->id() );
		$writer    = new ArchiveWriter( $files );
		return new SiteAssets( $runtime, $host, new CoreArchive( $directory, $files, $writer ), new SeedArchives( new InstalledCode(), $writer, ( new ReflectionClass( BundleSeed::class ) )->newInstanceWithoutConstructor() ), $files );
	};
	$engines();

	$t->test(
		'the archive of this release is installed in one directory of its version',
		static function () use ( $t, $install, $runtime, $zip, $contents, $left ): void {
			$install->remove();
			$t->same( false, $install->status()['installed'] );
			$status = $install->install( $zip( $contents ) );
			$t->same( [ true, '8.3.99', [ 'installed', 'installed', 'installed' ] ], [ $status['installed'], $status['php'], array_column( $status['files'], 'status' ) ] );
			foreach ( $contents as $name => $text ) {
				$t->same( $text, (string) file_get_contents( $runtime->directory() . '/' . $name ) );
				$t->same( 0644, fileperms( $runtime->directory() . '/' . $name ) & 0777 );
			}
			$t->same( [ basename( $runtime->directory() ) ], $left() );
			$t->same( 0755, fileperms( $runtime->directory() ) & 0777 );
			$t->same( content_url( 'uploads/wp-codebox-browser-runtime/' . basename( $runtime->directory() ) . '/' ), $runtime->url() );
			$t->same( true, $install->install( $zip( $contents ) )['installed'], 'installed again' );
			$t->same( [ basename( $runtime->directory() ) ], $left() );
		}
	);
	$t->test(
		'a runtime archive that differs from the list in any way is refused and nothing is installed',
		static function () use ( $t, $install, $zip, $contents, $code, $says, $left, $work ): void {
			$name    = array_key_first( $contents );
			$hostile = [
				'a further file'          => $zip( $contents + [ 'more.php' => '<?php' ] ),
				'a path upwards'          => $zip( $contents + [ '../evil.php' => '<?php' ] ),
				'an absolute path'        => $zip( $contents + [ '/tmp/evil.php' => '<?php' ] ),
				'a directory'             => $zip( $contents, static fn( ZipArchive $archive ) => $archive->addEmptyDir( 'x' ) ),
				'a top directory'         => $zip( array_combine( array_map( static fn( string $name ): string => "codebox/$name", array_keys( $contents ) ), $contents ) ),
				'other case'              => $zip( [ strtoupper( $name ) => $contents[ $name ] ] + array_diff_key( $contents, [ $name => 1 ] ) ),
				'a missing file'          => $zip( array_diff_key( $contents, [ $name => 1 ] ) ),
				'other bytes'             => $zip( [ $name => strrev( $contents[ $name ] ) ] + $contents ),
				'a shorter file'          => $zip( [ $name => substr( $contents[ $name ], 1 ) ] + $contents ),
				'a longer file'           => $zip( [ $name => $contents[ $name ] . 'x' ] + $contents ),
				'a symbolic link'         => $zip( $contents, static fn( ZipArchive $archive ) => $archive->setExternalAttributesName( $name, ZipArchive::OPSYS_UNIX, 0120777 << 16 ) ),
				'a device'                => $zip( $contents, static fn( ZipArchive $archive ) => $archive->setExternalAttributesName( $name, ZipArchive::OPSYS_UNIX, 0020777 << 16 ) ),
				'an encrypted file'       => $zip( $contents, static fn( ZipArchive $archive ) => $archive->setEncryptionName( $name, ZipArchive::EM_AES_256, 'password' ) ),
				'an empty archive'        => $zip( [], static fn( ZipArchive $archive ) => $archive->addEmptyDir( 'x' ) ),
			];
			// The same name twice: the second entry is renamed in the bytes of the archive.
			$twice = (string) file_get_contents( $zip( $contents + [ strrev( $name ) => $contents[ $name ] ] ) );
			file_put_contents( $hostile['a name twice'] = "$work/twice.zip", str_replace( strrev( $name ), $name, $twice ) );
			// The headers of the archive state the right size, but the data of the entry is longer.
			$false = (string) file_get_contents( $zip( [ $name => $contents[ $name ] . 'x' ] + $contents ) );
			$size  = strlen( $contents[ $name ] );
			file_put_contents( $hostile['a false size'] = "$work/false.zip", str_replace( pack( 'V', $size + 1 ), pack( 'V', $size ), $false ) );
			file_put_contents( $hostile['a text file'] = "$work/text.zip", 'no archive' );
			file_put_contents( $hostile['half an archive'] = "$work/half.zip", substr( $twice, 0, 2000 ) );
			$hostile['no file']     = "$work/absent.zip";
			$hostile['a directory as archive'] = $work;
			foreach ( [ 'nothing installed' => [], 'with an installation' => $contents ] as $state => $before ) {
				$install->remove();
				[] === $before || $install->install( $zip( $contents ) );
				$then = $left();
				foreach ( $hostile as $what => $path ) {
					$t->same( 'wp_codebox_browser_assets_invalid', $code( static fn() => $install->install( $path ) ), "$what, $state" );
					$t->same( $then, $left(), "$what, $state" );
				}
				$t->same( [] !== $before, $install->status( true )['installed'], $state );
			}
			$t->contains( 'more.php', $says( static fn() => $install->install( $hostile['a further file'] ) ) );
			$t->contains( $name, $says( static fn() => $install->install( $hostile['a missing file'] ) ) );
			$t->same( [], glob( dirname( $work ) . '/evil.php' ) ?: [] );
			$t->same( 'ok', $code( static fn() => $install->install( $zip( $contents ) ) ), 'positive control' );
		}
	);
	$t->test(
		'leftovers of an interrupted installation and files of another version are removed by the next one',
		static function () use ( $t, $install, $runtime, $zip, $contents, $left ): void {
			$install->remove();
			foreach ( [ '.new-0123', '.old-0123', '0123456789abcdef' ] as $name ) {
				wp_mkdir_p( $runtime->base() . '/' . $name );
				file_put_contents( $runtime->base() . "/$name/php-jspi.bin", 'half' );
			}
			// A link is deleted, and what it leads to stays.
			$outside = getenv( 'TEST_WORK' ) . '/outside';
			wp_mkdir_p( $outside );
			file_put_contents( "$outside/kept", '' );
			symlink( $outside, $runtime->base() . '/.new-link' );
			$install->install( $zip( $contents ) );
			$t->same( [ basename( $runtime->directory() ) ], $left() );
			$t->true( is_file( "$outside/kept" ), 'the target of a link was deleted' );
			$install->remove();
			$t->same( false, is_dir( $runtime->base() ) );
		}
	);
	$t->test(
		'a missing or damaged file of engine or runtime is named',
		static function () use ( $t, $install, $runtime, $engine, $engines, $folder, $zip, $contents, $code, $says ): void {
			$install->install( $zip( $contents ) );
			$t->same( [ 'ok', 'ok' ], [ $code( $engine->check( ... ) ), $code( $runtime->check( ... ) ) ], 'positive control' );
			foreach ( array_keys( $contents ) as $name ) {
				$path = $runtime->directory() . '/' . $name;
				unlink( $path );
				$t->same( 'wp_codebox_browser_assets_missing', $code( $runtime->check( ... ) ) );
				$t->contains( $name, $says( $runtime->check( ... ) ) );
				file_put_contents( $path, 'short' );
				$t->same( 'damaged', $runtime->rows()[ $name ]['status'] );
				$t->contains( $name, $says( $runtime->check( ... ) ) );
				file_put_contents( $path, str_repeat( 'x', strlen( $contents[ $name ] ) ) );
				$t->same( [ 'installed', 'damaged' ], [ $runtime->rows()[ $name ]['status'], $runtime->rows( true )[ $name ]['status'] ], 'only the hash tells' );
				file_put_contents( $path, $contents[ $name ] );
			}
			foreach ( [ 'sw.js', 'remote.html' ] as $name ) {
				unlink( "$folder/$name" );
				$t->same( 'wp_codebox_browser_assets_missing', $code( $engine->check( ... ) ) );
				$t->contains( "assets/browser/$name", $says( $engine->check( ... ) ) );
				touch( "$folder/$name" );
				$t->contains( "assets/browser/$name", $says( $engine->check( ... ) ) );
				$engines();
			}
			foreach ( [ '', '[]', '{"schema":"other","files":[]}', '{"schema":"wp-codebox/browser-runtime-files/v1","files":[]}', '{"schema":"wp-codebox/browser-runtime-files/v1","files":[{"name":"../x","bytes":1,"sha256":"' . str_repeat( 'a', 64 ) . '"}]}', '{"schema":"wp-codebox/browser-runtime-files/v1","files":[{"name":"x","bytes":"1","sha256":"' . str_repeat( 'a', 64 ) . '"}]}' ] as $text ) {
				file_put_contents( "$folder/runtime.json", $text );
				$t->same( 'wp_codebox_browser_assets_missing', $code( $engine->runtime( ... ) ), $text );
			}
			$engines();
		}
	);
	$t->test(
		'a separate host that cannot isolate the sandbox is refused',
		static function () use ( $t, $code ): void {
			$isolation = static fn( string $host, string $cookies = '' ): string => $code( static fn() => ( new BrowserHost( $host, '', $cookies ) )->isolation() );
			// The test site is http://localhost.
			foreach ( [ 'https://localhost', 'https://localhost:8443', 'http://localhost:8080', 'https://LOCALHOST', 'https://localhost./', 'http://sandbox.example.org', 'sandbox.example.org', '//sandbox.example.org', 'https://sandbox.example.org/path', 'https://user:password@sandbox.example.org', 'https://sandbox.example.org?x=1', 'https://sandbox.example.org#x', 'ftp://sandbox.example.org', 'https://', 'x' ] as $host ) {
				$t->same( 'wp_codebox_browser_host_invalid', $isolation( $host ), $host );
			}
			foreach ( [ 'example.org', '.example.org', '.EXAMPLE.org', 'sandbox.example.org' ] as $domain ) {
				$t->same( 'wp_codebox_browser_host_invalid', $isolation( 'https://sandbox.example.org', $domain ), $domain );
			}
			foreach ( [ '', '.other.org', '.ample.org' ] as $domain ) {
				$t->same( 'ok', $isolation( 'https://sandbox.example.org', $domain ), "positive control: $domain" );
			}
			$t->same( [ 'separate-host', 'https://sandbox.example.org' ], [ ( new BrowserHost( 'https://Sandbox.example.org:443/' ) )->isolation(), ( new BrowserHost( 'https://Sandbox.example.org:443/' ) )->origin() ] );
			$t->same( 'http://127.0.0.1:8080', ( new BrowserHost( 'http://127.0.0.1:8080' ) )->origin(), 'loopback needs no encryption' );
			$t->same( [ 'opaque', '' ], [ ( new BrowserHost( '' ) )->isolation(), ( new BrowserHost( '' ) )->origin() ] );
			foreach ( [ 'localhost', 'x.localhost', '127.0.0.1', '::1', '[::1]' ] as $host ) {
				$t->same( true, BrowserHost::is_loopback( $host ), $host );
			}
			foreach ( [ 'localhost.example.org', '127.0.0.1.example.org', 'example.org', 'mylocalhost', '' ] as $host ) {
				$t->same( false, BrowserHost::is_loopback( $host ), $host );
			}
		}
	);
	$t->test(
		'the contract names addresses of this site only, with sizes and hashes',
		static function () use ( $t, $assets, $install, $zip, $contents, $runtime ): void {
			$t->as( 'administrator' );
			$install->install( $zip( $contents ) );
			$made = $assets( new BrowserHost( '' ) )->contract( 'scope-1', 'browser-session-1' );
			$t->same( [ 'client_module_url', 'remote_url', 'cors_proxy_url', 'isolation', 'provenance', 'codebox' ], array_keys( $made ) );
			$t->same( [ '', 'opaque', 'opaque', 'browser-session-1' ], [ $made['cors_proxy_url'], $made['isolation'], $made['codebox']['isolation'], $made['codebox']['session_id'] ] );
			$t->same( [ 'php-jspi.bin', 'php-asyncify.bin', 'sqlite-database-integration.zip' ], array_column( $made['codebox']['runtime']['files'], 'name' ) );
			$addresses = [];
			array_walk_recursive(
				$made,
				static function ( mixed $value ) use ( &$addresses ): void {
					is_string( $value ) && str_contains( $value, '://' ) && $addresses[] = $value;
				}
			);
			$t->true( count( $addresses ) >= 8, 'too few addresses' );
			foreach ( $addresses as $address ) {
				$t->same( 'localhost', wp_parse_url( $address, PHP_URL_HOST ), $address );
			}
			$t->contains( '/wp-content/plugins/wp-codebox/assets/browser/remote.html', $made['remote_url'] );
			$t->same( 64, strlen( $made['codebox']['core']['sha256'] ) );
			$rows = $assets( new BrowserHost( '' ) )->roots( [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ], 'browser-session-1' );
			$t->same( [ 'target', 'path', 'archive' ], array_keys( $rows[0] ) );
			$t->contains( 'wp-codebox/v1/browser-file/', rawurldecode( $rows[0]['archive']['url'] ) );
		}
	);
	$t->test(
		'with a separate host only the remote page is loaded from it, and an outside host needs its own constant',
		static function () use ( $t, $assets, $folder, $code, $install, $zip, $contents ): void {
			$t->as( 'administrator' );
			$install->install( $zip( $contents ) );
			$made = $assets( new BrowserHost( 'https://sandbox.example.org' ) )->contract( 'scope-1', 'browser-session-1' );
			$t->same( [ 'origin' => 'https://sandbox.example.org', 'embedders' => [ 'http://localhost' ] ], json_decode( (string) file_get_contents( "$folder/separate-host.json" ), true ), 'the file for the remote page' );
			unlink( "$folder/separate-host.json" );
			mkdir( "$folder/separate-host.json" );
			set_error_handler( static fn(): bool => true );
			$t->same( 'wp_codebox_browser_host_invalid', $code( static fn() => $assets( new BrowserHost( 'https://sandbox.example.org' ) )->contract( 'scope-1', 'browser-session-1' ) ), 'a file that cannot be written' );
			restore_error_handler();
			rmdir( "$folder/separate-host.json" );
			touch( "$folder/separate-host.json" );
			$assets( new BrowserHost( '' ) )->contract( 'scope-1', 'browser-session-1' );
			clearstatcache();
			$t->same( false, file_exists( "$folder/separate-host.json" ), 'without the constant no other host is accepted' );
			$t->same( 'separate-host', $made['isolation'] );
			$t->contains( 'https://sandbox.example.org/wp-content/plugins/wp-codebox/assets/browser/remote.html', $made['remote_url'] );
			$t->same( 'localhost', wp_parse_url( $made['client_module_url'], PHP_URL_HOST ) );
			$made = $assets( new BrowserHost( '', 'https://playground.example.org/' ) )->contract( 'scope-1', 'browser-session-1' );
			$t->same( [ 'https://playground.example.org/client/index.js', 'https://playground.example.org/remote.html', [], 'outside-host' ], [ $made['client_module_url'], $made['remote_url'], $made['codebox'], $made['provenance']['source'] ] );
		}
	);
	$t->test(
		'plugin files and uploads on another host are refused',
		static function () use ( $t, $assets, $code, $engine, $runtime, $install, $zip, $contents ): void {
			$t->as( 'administrator' );
			$install->install( $zip( $contents ) );
			$contract = static fn() => $assets( new BrowserHost( '' ) )->contract( 'scope-1', 'browser-session-1' );
			$t->same( 'ok', $code( $contract ), 'positive control' );
			$elsewhere = static fn( string $url ): string => str_replace( '//localhost', '//cdn.example.org', $url );
			foreach ( [ 'plugins_url' => $engine->url( ... ), 'content_url' => static fn( string $name ) => $runtime->url() ] as $filter => $one ) {
				add_filter( $filter, $elsewhere );
				try {
					$t->same( 'wp_codebox_browser_host_invalid', $code( static fn() => $one( 'client.js' ) ), $filter );
					$t->same( 'wp_codebox_browser_host_invalid', $code( $contract ), $filter );
				} finally {
					remove_filter( $filter, $elsewhere );
				}
			}
		}
	);
	$t->test(
		'the settings and Site Health show isolation and runtime files',
		static function () use ( $t, $install, $runtime, $zip, $contents ): void {
			$t->as( 'administrator' );
			$print = static function ( BrowserHost $host ) use ( $install ): string {
				ob_start();
				( new BrowserFields( $install, $host ) )->render();
				return (string) ob_get_clean();
			};
			$health = static fn( BrowserHost $host ): array => ( new BrowserHealth( $runtime, new BrowserFields( $install, $host ), $host ) )->test();
			$install->install( $zip( $contents ) );
			$page = $print( new BrowserHost( '' ) );
			foreach ( [ 'Opaque origin', 'Installed: PHP 8.3.99', 'type="file"', 'multipart/form-data', 'name="_wpnonce"', 'name="remove"' ] as $part ) {
				$t->contains( $part, $page );
			}
			$t->contains( 'loaded from https://sandbox.example.org', $print( new BrowserHost( 'https://sandbox.example.org' ) ) );
			$t->contains( 'cookies ignore ports', $print( new BrowserHost( 'https://localhost:8443' ) ) );
			$t->same( 'good', $health( new BrowserHost( '' ) )['status'] );
			$bad = $health( new BrowserHost( 'https://localhost:8443' ) );
			$t->same( 'recommended', $bad['status'] );
			$t->contains( 'cookies ignore ports', $bad['description'] );
			$install->remove();
			$t->contains( 'Not installed', $print( new BrowserHost( '' ) ) );
			$bad = $health( new BrowserHost( '' ) );
			$t->contains( 'php-jspi.bin', $bad['description'] );
			$t->contains( 'codebox-browser.zip', $bad['actions'] );
			$t->true( isset( apply_filters( 'site_status_tests', [ 'direct' => [] ] )['direct']['wp_codebox_browser'] ), 'no test of Site Health' );
		}
	);
	$t->test(
		'the command installs, checks and removes the runtime files',
		static function () use ( $t, $install, $runtime, $zip, $contents ): void {
			$install->remove();
			[ $status, $out ] = $t->wp( [ 'codebox', 'browser-assets', 'status', '--format=json' ] );
			$t->same( [ 1, false ], [ $status, json_decode( $out, true )['installed'] ] );
			[ $status, , $err ] = $t->wp( [ 'codebox', 'browser-assets', 'install', $zip( $contents + [ 'x' => 'y' ] ) ] );
			$t->same( 1, $status );
			$t->contains( 'which does not belong to this release', $err );
			[ $status, $out, $err ] = $t->wp( [ 'codebox', 'browser-assets', 'install', $zip( $contents ), '--format=json' ] );
			$t->same( [ 0, true ], [ $status, json_decode( $out, true )['installed'] ?? $err ] );
			file_put_contents( $runtime->directory() . '/sqlite-database-integration.zip', 'sqlitf' );
			[ $status, $out ] = $t->wp( [ 'codebox', 'browser-assets', 'status' ] );
			$t->same( 1, $status );
			$t->contains( 'damaged', $out );
			[ $status ] = $t->wp( [ 'codebox', 'browser-assets', 'remove' ] );
			clearstatcache();
			$t->same( [ 0, false ], [ $status, is_dir( $runtime->base() ) ] );
			[ $status, , $err ] = $t->wp( [ 'codebox', 'browser-assets', 'install', $zip( $contents ), '--user=editor' ] );
			$t->same( 126, $status );
			$t->same( false, is_dir( $runtime->base() ) );
		}
	);
	$t->test(
		'rows of plugins and details of themes have a link, for users who may run',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$links = apply_filters( 'plugin_action_links', [], 'sample/sample.php', [], 'all' );
			$t->contains( 'Open in browser sandbox', (string) ( $links['wp-codebox-browser'] ?? '' ) );
			$t->contains( 'kind=plugin&#038;slug=sample&#038;_wpnonce=', $links['wp-codebox-browser'] );
			$themes = wp_prepare_themes_for_js();
			$t->contains( 'kind=theme&#038;slug=' . $themes[0]['id'], $themes[0]['description'] );
			$t->contains( 'kind=theme', (string) ( apply_filters( 'theme_action_links', [], wp_get_theme(), 'all' )['wp-codebox-browser'] ?? '' ) );
			$t->as( 'editor' );
			$t->same( [], apply_filters( 'plugin_action_links', [], 'sample/sample.php', [], 'all' ) );
			$t->same( [], apply_filters( 'theme_action_links', [], wp_get_theme(), 'all' ) );
		}
	);
	$t->test(
		'the page lists what can be opened, and is only for users who may run',
		static function () use ( $t, $engine ): void {
			$page  = new BrowserPage( $engine, new Capabilities(), new InstalledCode() );
			$known = static function () use ( $page ): bool {
				$GLOBALS['_registered_pages'] = [];
				$page->add();
				return isset( $GLOBALS['_registered_pages'][ 'admin_page_' . BrowserPage::SLUG ] );
			};
			$t->as( 'editor' );
			$t->same( false, $known() );
			$t->as( 'administrator' );
			$t->same( true, $known() );
			ob_start();
			$page->load();
			$page->render();
			$html = (string) ob_get_clean();
			$t->contains( 'kind=plugin&#038;slug=sample&#038;', $html );
			$t->contains( 'kind=theme&#038;slug=twentytwentyfive&#038;', $html );
		}
	);
	$t->test(
		'the page shows why no session can be opened, and asks for https and a nonce first',
		static function () use ( $t, $engine, $install ): void {
			$t->as( 'administrator' );
			$install->remove();
			$show = static function ( array $query ) use ( $engine ): string {
				$_GET = $_REQUEST = $query;
				$page = new BrowserPage( $engine, new Capabilities(), new InstalledCode() );
				$stop = static fn(): Closure => static function ( mixed $message ): void {
					throw new RuntimeException( 'stopped' );
				};
				add_filter( 'wp_die_handler', $stop );
				ob_start();
				try {
					$page->load();
					$page->render();
				} catch ( RuntimeException $thrown ) {
					echo esc_html( $thrown->getMessage() );
				} finally {
					remove_filter( 'wp_die_handler', $stop );
					$_GET = $_REQUEST = [];
				}
				return (string) ob_get_clean();
			};
			$query = [ 'kind' => 'plugin', 'slug' => 'sample' ];
			$t->same( 'stopped', $show( $query ) );
			$signed = $query + [ '_wpnonce' => wp_create_nonce( BrowserPage::NONCE ) ];
			$shown  = $show( $signed );
			$t->true( str_contains( $shown, 'notice-error' ) && str_contains( $shown, '<code>' ), "no sentence: $shown" );
			$plain = static fn( string $url ): string => str_replace( '//localhost', '//site.example.org', $url );
			add_filter( 'admin_url', $plain );
			try {
				$t->contains( 'A browser sandbox needs https', $show( $signed ) );
			} finally {
				remove_filter( 'admin_url', $plain );
			}
			$t->true( ! str_contains( $show( $signed ), 'needs https' ), 'loopback needs no encryption' );
		}
	);
};
