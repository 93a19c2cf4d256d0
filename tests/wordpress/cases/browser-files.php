<?php
/**
 * Files that browser sandboxes download: the private store, its links, and the archives of core, plugins and themes.
 */

declare(strict_types=1);

use WPCodebox\Browser\ArchiveWriter;
use WPCodebox\Browser\CodeFiles;
use WPCodebox\Browser\CoreArchive;
use WPCodebox\Browser\FileRoute;
use WPCodebox\Browser\FileToken;
use WPCodebox\Browser\PrivateDirectory;
use WPCodebox\Browser\PrivateFiles;
use WPCodebox\Browser\SeedArchives;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$site      = new Site( new InstalledCode() );
	$directory = new PrivateDirectory( $site );
	$files     = new PrivateFiles( $directory, $site->id() );
	$writer    = new ArchiveWriter( $files );
	$seeds     = new SeedArchives( new InstalledCode(), $writer, ( static fn() => ( new ReflectionClass( \WPCodebox\Browser\BundleSeed::class ) )->newInstanceWithoutConstructor() )() );
	$code      = static function ( callable $body ): string {
		try {
			$body();
			return 'ok';
		} catch ( Failure $failure ) {
			return $failure->error_code;
		}
	};
	$add       = static function ( string $text, ?PrivateFiles $to = null ) use ( $files ): array {
		$path = ( $to ?? $files )->temporary();
		file_put_contents( $path, $text );
		return ( $to ?? $files )->add( $path );
	};
	// Opens a stored archive: contents by name.
	$unpacked  = static function ( string $sha256 ) use ( $files, $t ): array {
		$zip = new ZipArchive();
		$t->same( true, $zip->open( (string) $files->path( $sha256 ) ) );
		$found = [];
		for ( $index = 0; $index < $zip->numFiles; $index++ ) {
			$found[ $zip->getNameIndex( $index ) ] = (string) $zip->getFromIndex( $index );
		}
		return $found;
	};
	$sessions  = [ 'browser-session-1' ];
	$route     = new FileRoute(
		static fn(): PrivateFiles => $files,
		static function ( string $id ) use ( &$sessions ): void {
			if ( ! in_array( $id, $sessions, true ) ) {
				throw Failure::because( ErrorCode::RunNotFound, 'There is no such session.' );
			}
		},
		$site->id()
	);
	// Calls the route as the current user. The permission check is what the REST server calls first.
	$get       = static function ( string $token, array $headers = [] ) use ( $route ): WP_REST_Response|WP_Error {
		$request = new WP_REST_Request( 'GET', '/wp-codebox/v1/browser-file/' . $token );
		$request->set_param( 'token', $token );
		foreach ( $headers as $name => $value ) {
			$request->set_header( $name, $value );
		}
		$may = $route->permit( $request );
		return true === $may ? $route->answer( $request ) : $may;
	};
	$token     = static function ( string $url ): string {
		parse_str( (string) wp_parse_url( $url, PHP_URL_QUERY ), $query );
		return basename( (string) ( $query['rest_route'] ?? wp_parse_url( $url, PHP_URL_PATH ) ) );
	};

	$t->test(
		'a stored file is private, found by its sha256, and stored once',
		static function () use ( $t, $files, $directory, $add ): void {
			$made = $add( 'one' );
			$path = (string) $files->path( hash( 'sha256', 'one' ) );
			$t->same( [ hash( 'sha256', 'one' ), 3, 'one' ], [ $made['sha256'], $made['bytes'], (string) file_get_contents( $path ) ] );
			$t->same( 0600, fileperms( $path ) & 0777 );
			$t->same( $made, $add( 'one' ) );
			$t->same( null, $files->path( hash( 'sha256', 'two' ) ), 'a file that is not stored' );
			$t->same( null, $files->path( '../' . $made['sha256'] ), 'a path' );
			$t->same( 'browser', basename( dirname( $path ) ), 'the state directory is the first choice' );
		}
	);
	$t->test(
		'a symbolic link in the store is no stored file',
		static function () use ( $t, $files, $directory ): void {
			$name = hash( 'sha256', 'linked' );
			$link = $directory->path() . '/' . $name;
			file_put_contents( $link, 'linked' );
			$t->same( $link, $files->path( $name ), 'positive control' );
			unlink( $link );
			symlink( ABSPATH . 'wp-config.php', $link );
			try {
				$t->same( null, $files->path( $name ) );
			} finally {
				unlink( $link );
			}
		}
	);
	$t->test(
		'a directory that cannot be written is refused',
		static function () use ( $t, $code, $files, $directory ): void {
			$files->remove();
			$state  = dirname( $directory->path() ) . '/browser';
			$work   = (string) getenv( 'TEST_WORK' ) . '/uploads-blocked';
			$filter = static fn( array $uploads ): array => [ 'basedir' => $work ] + $uploads;
			rmdir( $state );
			// A file in place of the directory `browser` in the state directory makes that directory unusable, also for root.
			file_put_contents( $state, '' );
			try {
				$place = $directory->path();
				$t->same( 1, preg_match( '/^wp-codebox-browser-files-[0-9a-f]{32}$/', basename( $place ) ), 'the uploads are next' );
				$t->same( dirname( $place ), (string) wp_get_upload_dir()['basedir'] );
				$t->contains( 'Require all denied', (string) file_get_contents( "$place/.htaccess" ) );
				$t->true( is_file( "$place/index.php" ), 'no index.php' );
				$t->same( $place, $directory->path(), 'the name stays' );
				$files->remove();
				$t->same( false, is_dir( $place ) );
				add_filter( 'upload_dir', $filter );
				file_put_contents( $work, '' );
				$t->same( 'wp_codebox_browser_storage_failed', $code( static fn() => $directory->path() ) );
			} finally {
				remove_filter( 'upload_dir', $filter );
				unlink( $state );
				is_file( $work ) && unlink( $work );
			}
			$t->same( 'ok', $code( static fn() => $directory->path() ), 'positive control' );
		}
	);
	$t->test(
		'the store refuses what exceeds its size, and makes room by deleting old files',
		static function () use ( $t, $directory, $site, $files, $code, $add ): void {
			$files->sweep();
			$used  = array_sum( array_map( 'filesize', array_filter( glob( $directory->path() . '/*' ), static fn( string $path ): bool => 64 === strlen( basename( $path ) ) ) ) );
			$small = new PrivateFiles( $directory, $site->id(), $used + 1000 );
			$old   = $add( str_repeat( 'a', 900 ), $small );
			$t->same( 'wp_codebox_browser_storage_full', $code( static fn() => $add( str_repeat( 'b', 900 ), $small ) ) );
			$t->same( null, $small->path( hash( 'sha256', str_repeat( 'b', 900 ) ) ), 'nothing is left of a refused file' );
			touch( (string) $small->path( $old['sha256'] ), time() - 1 );
			$t->same( 'ok', $code( static fn() => $add( str_repeat( 'b', 900 ), $small ) ), 'an old file makes room' );
			$t->same( null, $small->path( $old['sha256'] ) );
		}
	);
	$t->test(
		'the cleanup deletes files that no link needs and keeps the others, and uninstalling deletes all',
		static function () use ( $t, $files, $directory, $add ): void {
			$t->as( 'administrator' );
			$kept = $add( 'kept by a link' );
			$gone = $add( 'without a link' );
			touch( (string) $files->path( $kept['sha256'] ), time() - 1 );
			touch( (string) $files->path( $gone['sha256'] ), time() - 1 );
			$files->url( $kept['sha256'], 'browser-session-1', time() + 100 );
			$half = $files->temporary();
			touch( $half, time() - 2 * HOUR_IN_SECONDS );
			do_action( PrivateFiles::CLEANUP );
			clearstatcache();
			$t->same( [ true, null, false ], [ null !== $files->path( $kept['sha256'] ), $files->path( $gone['sha256'] ), file_exists( $half ) ] );
			$t->true( false !== wp_next_scheduled( PrivateFiles::CLEANUP ), 'no cron event' );
			$place = $directory->path();
			$files->remove();
			$t->same( [ false, false ], [ is_dir( $place ), wp_next_scheduled( PrivateFiles::CLEANUP ) ] );
		}
	);
	$t->test(
		'a link serves its file to its user with headers that forbid guessing types and shared caches',
		static function () use ( $t, $files, $add, $get, $token ): void {
			$t->as( 'administrator' );
			$made   = $add( 'served' );
			$text   = $token( $files->url( $made['sha256'], 'browser-session-1', time() + 100 ) );
			$answer = $get( $text );
			$t->true( $answer instanceof WP_REST_Response, 'refused' );
			$headers = $answer->get_headers();
			$t->same( [ 200, 'application/zip', 'nosniff', '6', '"' . $made['sha256'] . '"' ], [ $answer->get_status(), $headers['Content-Type'], $headers['X-Content-Type-Options'], $headers['Content-Length'], $headers['ETag'] ] );
			$t->contains( 'private, immutable', $headers['Cache-Control'] );
			$t->same( 304, $get( $text, [ 'if_none_match' => '"' . $made['sha256'] . '"' ] )->get_status() );
			$t->same( 200, $get( $text, [ 'if_none_match' => '"other"' ] )->get_status() );
		}
	);
	$t->test(
		'a tampered link is refused',
		static function () use ( $t, $files, $add, $get, $token, $site ): void {
			$t->as( 'administrator' );
			$text = $token( $files->url( $add( 'tampered' )['sha256'], 'browser-session-1', time() + 100 ) );
			$t->same( 200, $get( $text )->get_status(), 'positive control' );
			[ $claims, $signature ] = explode( '.', $text );
			$plain  = (string) base64_decode( strtr( $claims, '-_', '+/' ) );
			$encode = static fn( string $bytes ): string => rtrim( strtr( base64_encode( $bytes ), '+/', '-_' ), '=' );
			foreach ( [
				'other file'    => $encode( str_replace( hash( 'sha256', 'tampered' ), hash( 'sha256', 'other' ), $plain ) ) . '.' . $signature,
				'later expiry'  => $encode( (string) preg_replace( '/\d+\]$/', '9999999999]', $plain ) ) . '.' . $signature,
				'own signature' => $claims . '.' . $encode( hash_hmac( 'sha256', $claims, 'guess', true ) ),
				'no signature'  => $claims . '.',
				'one part'      => $claims,
				'padding'       => $text . '=',
				'empty'         => '',
				'long'          => str_repeat( 'a', 5000 ) . '.' . $signature,
			] as $what => $bad ) {
				$answer = $get( $bad );
				$t->same( 'wp_codebox_browser_link_invalid', is_wp_error( $answer ) ? $answer->get_error_code() : 'served', $what );
			}
			$t->error( 'wp_codebox_browser_link_invalid', 403, $get( 'x.y' ) );
		}
	);
	$t->test(
		'an expired link is refused',
		static function () use ( $t, $files, $add, $get, $token ): void {
			$t->as( 'administrator' );
			$sha256 = $add( 'expired' )['sha256'];
			$t->same( 200, $get( $token( $files->url( $sha256, 'browser-session-1', time() + 100 ) ) )->get_status(), 'positive control' );
			$t->error( 'wp_codebox_browser_link_expired', 410, $get( $token( $files->url( $sha256, 'browser-session-1', time() ) ) ) );
		}
	);
	$t->test(
		'a link is valid only for its user and site',
		static function () use ( $t, $files, $add, $get, $token, $site ): void {
			$t->as( 'administrator' );
			$sha256 = $add( 'foreign' )['sha256'];
			$text   = $token( $files->url( $sha256, 'browser-session-1', time() + 100 ) );
			$other  = ( new FileToken( $sha256, get_current_user_id(), 'site-2-000000000000', 'browser-session-1', time() + 100 ) )->text();
			$t->error( 'wp_codebox_browser_link_foreign', 403, $get( $other ) );
			$t->as( 'editor' );
			$t->error( 'wp_codebox_browser_link_foreign', 403, $get( $text ) );
			wp_set_current_user( 0 );
			$t->error( 'wp_codebox_browser_link_foreign', 403, $get( $text ) );
			$t->as( 'administrator' );
			$t->same( 200, $get( $text )->get_status(), 'positive control' );
		}
	);
	$t->test(
		'a link of a visitor without REST nonce is judged by the login cookie',
		static function () use ( $t, $files, $add, $get, $token ): void {
			$t->as( 'administrator' );
			$user = get_current_user_id();
			$text = $token( $files->url( $add( 'cookie' )['sha256'], 'browser-session-1', time() + 100 ) );
			wp_set_current_user( 0 );
			$_SERVER['REQUEST_METHOD']   = 'GET';
			$_COOKIE[ LOGGED_IN_COOKIE ] = wp_generate_auth_cookie( $user, time() + 100, 'logged_in' );
			try {
				$t->same( 200, $get( $text )->get_status() );
				$t->same( 0, get_current_user_id(), 'the request stays anonymous' );
				$_COOKIE[ LOGGED_IN_COOKIE ] .= 'x';
				$t->error( 'wp_codebox_browser_link_foreign', 403, $get( $text ) );
			} finally {
				unset( $_COOKIE[ LOGGED_IN_COOKIE ], $_SERVER['REQUEST_METHOD'] );
			}
		}
	);
	$t->test(
		'a link ends with its session',
		static function () use ( $t, $files, $add, $get, $token, &$sessions ): void {
			$t->as( 'administrator' );
			$sha256 = $add( 'session' )['sha256'];
			$text   = $token( $files->url( $sha256, 'browser-session-2', time() + 100 ) );
			$t->same( 'wp_codebox_run_not_found', $get( $text )->get_error_code() );
			$sessions[] = 'browser-session-2';
			$t->same( 200, $get( $text )->get_status(), 'positive control' );
		}
	);
	$t->test(
		'a link to a deleted file is refused',
		static function () use ( $t, $files, $add, $get, $token, $code ): void {
			$t->as( 'administrator' );
			$sha256 = $add( 'deleted' )['sha256'];
			$text   = $token( $files->url( $sha256, 'browser-session-1', time() + 100 ) );
			unlink( (string) $files->path( $sha256 ) );
			$t->error( 'wp_codebox_browser_file_missing', 404, $get( $text ) );
			$t->same( 'wp_codebox_browser_file_missing', $code( static fn() => $files->url( $sha256, 'browser-session-1', time() + 100 ) ) );
		}
	);
	$t->test(
		'the archive of core has the files of core that PHP reads and nothing else of the site',
		static function () use ( $t, $directory, $files, $writer, $unpacked ): void {
			$planted = [
				ABSPATH . '.htaccess'             => 'x',
				ABSPATH . 'secret.php'            => "<?php // planted-secret\n",
				ABSPATH . 'wp-config-backup.php'  => "<?php // planted-secret\n",
				ABSPATH . 'wp-admin/.user.ini'    => 'planted-secret',
				ABSPATH . 'wp-includes/error.log' => 'planted-secret',
			];
			foreach ( $planted as $path => $text ) {
				file_put_contents( $path, $text );
			}
			symlink( ABSPATH . 'wp-config.php', ABSPATH . 'wp-includes/linked.php' );
			CoreArchive::forget();
			try {
				$core  = ( new CoreArchive( $directory, $files, $writer ) )->current();
				$names = array_keys( $found = $unpacked( $core['sha256'] ) );
			} finally {
				array_map( 'unlink', [ ...array_keys( $planted ), ABSPATH . 'wp-includes/linked.php' ] );
				CoreArchive::forget();
			}
			$t->same( [], array_values( array_intersect( $names, [ 'wp-config.php', '.htaccess', 'secret.php', 'wp-config-backup.php', 'wp-admin/.user.ini', 'wp-includes/error.log', 'wp-includes/linked.php', 'wp-content/db.php' ] ) ) );
			$t->same( [], array_values( array_filter( $names, static fn( string $name ): bool => 1 === preg_match( '~^(?:/|\.\.)|wp-content/(?:plugins|mu-plugins|uploads)/|\.(?:map|woff2?|png|webp)$~', $name ) && ! str_contains( $name, 'screenshot.' ) ) ) );
			$t->same( [], array_values( array_diff( [ 'index.php', 'wp-config-sample.php', 'wp-load.php', 'wp-login.php', 'wp-settings.php', 'xmlrpc.php', 'wp-admin/index.php', 'wp-includes/version.php', 'wp-includes/js/wp-emoji-loader.min.js', 'wp-includes/js/wp-embed.min.js', 'wp-includes/css/dist/block-library/style.min.css', 'wp-includes/theme.json', 'wp-includes/certificates/ca-bundle.crt', "wp-content/themes/{$core['theme']}/style.css", "wp-content/themes/{$core['theme']}/screenshot.png" ], $names ) ) );
			$t->same( [ $core['theme'] ], array_values( array_unique( array_map( static fn( string $name ): string => explode( '/', $name )[2], array_filter( $names, static fn( string $name ): bool => str_starts_with( $name, 'wp-content/themes/' ) ) ) ) ) );
			foreach ( $found as $name => $text ) {
				if ( str_contains( $text, 'planted-secret' ) || str_contains( $text, AUTH_KEY ) ) {
					throw new WPCodebox\Tests\Failed( "a secret is in $name" );
				}
				if ( 'wp-includes/version.php' === $name ) {
					$t->same( (string) file_get_contents( ABSPATH . $name ), $text );
				}
			}
			$t->true( $core['bytes'] < 12000000, "the archive has {$core['bytes']} bytes" );
			$t->contains( 'wp-' . wp_get_wp_version() . '-' . $core['theme'], $core['key'] );
		}
	);
	$t->test(
		'the archive of core is made once, has equal bytes when made again, and is made again after an update',
		static function () use ( $t, $directory, $files, $writer ): void {
			$core  = new CoreArchive( $directory, $files, $writer );
			$first = $core->current();
			$path  = (string) $files->path( $first['sha256'] );
			// Other contents of the same size, whose hash nothing checks: they stay, so the archive was not made again.
			$bytes = (string) file_get_contents( $path );
			file_put_contents( $path, str_repeat( 'x', strlen( $bytes ) ) );
			$t->same( $first, $core->current() );
			$t->same( 'x', file_get_contents( $path, false, null, 0, 1 ), 'it was made again' );
			unlink( $path );
			$t->same( $first, $core->current(), 'equal bytes' );
			$t->same( $bytes, (string) file_get_contents( (string) $files->path( $first['sha256'] ) ) );
			$stored = get_option( CoreArchive::OPTION );
			update_option( CoreArchive::OPTION, [ 'key' => 'wp-1.0', 'version' => '1.0' ] + $stored, false );
			file_put_contents( $path, 'old' );
			$t->same( $first, $core->current(), 'another version' );
			$t->same( $bytes, (string) file_get_contents( (string) $files->path( $first['sha256'] ) ) );
			do_action( '_core_updated_successfully', '9.9' );
			$t->same( false, get_option( CoreArchive::OPTION ) );
		}
	);
	$t->test(
		'a plugin is packed without version control, packages of npm, links, credentials and large files',
		static function () use ( $t, $seeds, $unpacked ): void {
			$root    = WP_PLUGIN_DIR . '/sample';
			$planted = [ '.git/config', 'node_modules/x/index.js', '.env', 'wp-config.php', 'key.pem', '.htaccess', 'debug.log' ];
			foreach ( $planted as $name ) {
				wp_mkdir_p( dirname( "$root/$name" ) );
				file_put_contents( "$root/$name", 'planted' );
			}
			file_put_contents( "$root/asset.css", 'p{}' );
			symlink( ABSPATH . 'wp-config.php', "$root/linked.txt" );
			symlink( ABSPATH . 'wp-includes', "$root/linked" );
			$large = fopen( "$root/large.bin", 'w' );
			ftruncate( $large, CodeFiles::MAX_FILE + 1 );
			fclose( $large );
			try {
				$rows = $seeds->pack( [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ] );
				$again = $seeds->pack( [ [ 'kind' => 'plugin', 'slug' => 'sample' ], [ 'kind' => 'plugin', 'slug' => 'sample' ] ] );
			} finally {
				foreach ( [ ...$planted, 'asset.css', 'linked.txt', 'linked', 'large.bin' ] as $name ) {
					unlink( "$root/$name" );
				}
				array_map( 'rmdir', [ "$root/.git", "$root/node_modules/x", "$root/node_modules" ] );
			}
			$t->same( $rows, $again, 'equal bytes, and each root once' );
			$t->same( [ 'plugins/sample', '/wordpress/wp-content/plugins/sample' ], [ $rows[0]['target'], $rows[0]['path'] ] );
			$found = $unpacked( $rows[0]['archive']['sha256'] );
			$names = array_map( static fn( SplFileInfo $file ): string => substr( (string) $file, strlen( $root ) + 1 ), iterator_to_array( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $root, FilesystemIterator::SKIP_DOTS ) ), false ) );
			$names = [ ...$names, 'asset.css' ];
			sort( $names );
			$t->same( $names, array_keys( $found ) );
			$t->same( (string) file_get_contents( "$root/sample.php" ), $found['sample.php'] );
		}
	);
	$t->test(
		'a plugin of a single file and a child theme with its parent are packed',
		static function () use ( $t, $seeds, $unpacked, $code ): void {
			file_put_contents( WP_PLUGIN_DIR . '/single.php', "<?php\n/* Plugin Name: Single */\n" );
			$child = get_theme_root() . '/child';
			wp_mkdir_p( $child );
			file_put_contents( "$child/style.css", "/*\nTheme Name: Child\nTemplate: twentytwentyfive\n*/" );
			file_put_contents( "$child/index.php", '<?php' );
			wp_cache_delete( 'plugins', 'plugins' );
			wp_clean_themes_cache();
			try {
				foreach ( [ 'single', 'single.php' ] as $slug ) {
					$rows = $seeds->pack( [ [ 'kind' => 'plugin', 'slug' => $slug ] ] );
					$t->same( [ 'plugins/single.php', '/wordpress/wp-content/plugins/single.php' ], [ $rows[0]['target'], $rows[0]['path'] ] );
					$t->same( [ 'single.php' ], array_keys( $unpacked( $rows[0]['archive']['sha256'] ) ) );
				}
				symlink( WP_PLUGIN_DIR . '/single.php', WP_PLUGIN_DIR . '/linked.php' );
				wp_cache_delete( 'plugins', 'plugins' );
				$t->true( isset( get_plugins()['linked.php'] ), 'WordPress lists the link' );
				$t->same( 'wp_codebox_mount_source_invalid', $code( static fn() => $seeds->pack( [ [ 'kind' => 'plugin', 'slug' => 'linked' ] ] ) ), 'a link' );
				unlink( WP_PLUGIN_DIR . '/linked.php' );
				$rows = $seeds->pack( [ [ 'kind' => 'theme', 'slug' => 'child' ] ] );
				$t->same( [ 'themes/child', 'themes/twentytwentyfive' ], array_column( $rows, 'target' ) );
				$t->true( isset( $unpacked( $rows[1]['archive']['sha256'] )['theme.json'] ), 'the parent is empty' );
				foreach ( [ '../sample', 'sample/../sample', '/etc/passwd', '', '.', 'absent' ] as $slug ) {
					foreach ( [ 'plugin', 'theme' ] as $kind ) {
						$t->same( 'wp_codebox_mount_source_invalid', $code( static fn() => $seeds->pack( [ [ 'kind' => $kind, 'slug' => $slug ] ] ) ), "$kind $slug" );
					}
				}
				$t->same( 'wp_codebox_input_invalid', $code( static fn() => $seeds->pack( [ [ 'kind' => 'directory', 'slug' => 'sample' ] ] ) ) );
			} finally {
				array_map( 'unlink', [ WP_PLUGIN_DIR . '/single.php', "$child/style.css", "$child/index.php" ] );
				rmdir( $child );
				wp_cache_delete( 'plugins', 'plugins' );
				wp_clean_themes_cache();
			}
		}
	);
	$t->test(
		'a file that is too large for the sandbox or for the store is refused by its own limit',
		static function () use ( $t, $files ): void {
			$refusal = static function ( callable $call ): string {
				try {
					$call();
				} catch ( Failure $failure ) {
					return (string) $failure->getMessage();
				}
				return 'ok';
			};
			$sized   = static function ( string $path, int $bytes ): string {
				$file = fopen( $path, 'w' );
				ftruncate( $file, $bytes );
				fclose( $file );
				clearstatcache();
				return $path;
			};
			$single  = WP_PLUGIN_DIR . '/single.php';
			$stored  = $files->temporary();
			try {
				$t->same( true, str_contains( $refusal( static fn() => CodeFiles::one( $sized( $single, CodeFiles::MAX_FILE + 1 ) ) ), 'single.php is too large for a browser sandbox, which takes files of at most 16 MB' ) );
				$t->same( 'ok', $refusal( static fn() => CodeFiles::one( $sized( $single, CodeFiles::MAX_FILE ) ) ), 'positive control' );
				$t->same( true, str_contains( $refusal( static fn() => $files->add( $sized( $stored, PrivateFiles::MAX_FILE + 1 ) ) ), 'larger than 200 MB, the maximum for one file' ) );
				$t->same( false, is_file( $stored ) );
			} finally {
				unlink( $single );
			}
		}
	);
	$t->test(
		'a plugin that is too large is refused',
		static function () use ( $t, $seeds, $code ): void {
			$root = WP_PLUGIN_DIR . '/sample/large';
			wp_mkdir_p( $root );
			$count = intdiv( CodeFiles::MAX_BYTES, CodeFiles::MAX_FILE ) + 1;
			for ( $number = 0; $number < $count; $number++ ) {
				$file = fopen( "$root/$number.bin", 'w' );
				ftruncate( $file, CodeFiles::MAX_FILE );
				fclose( $file );
			}
			try {
				$t->same( 'wp_codebox_browser_seed_too_large', $code( static fn() => $seeds->pack( [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ] ) ) );
			} finally {
				array_map( 'unlink', glob( "$root/*" ) );
				rmdir( $root );
			}
			$t->same( 'ok', $code( static fn() => $seeds->pack( [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ] ) ), 'positive control' );
		}
	);
	$t->test(
		'without the zip module nothing is packed',
		static function () use ( $t, $seeds, $code ): void {
			$pack = static fn() => $seeds->pack( [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ] );
			$t->same( 'ok', $code( $pack ), 'positive control' );
			add_filter( 'wp_codebox_browser_zip_available', '__return_false' );
			try {
				$t->same( 'wp_codebox_browser_archive_unavailable', $code( $pack ) );
			} finally {
				remove_filter( 'wp_codebox_browser_zip_available', '__return_false' );
			}
		}
	);
};
