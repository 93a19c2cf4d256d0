<?php
/**
 * Plugins and themes that are symbolic links: the link target decides.
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Failure;
use WPCodebox\Host\HostPath;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Native\Extension;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$work    = (string) realpath( (string) getenv( 'TEST_WORK' ) );
	$uploads = (string) wp_get_upload_dir()['basedir'];
	$header  = "<?php\n/* Plugin Name: Linked */\n";
	// Runs a body while plugins and a theme are symbolic links: link name to its target and the plugin or theme file there.
	$linked = static function ( array $links, callable $body ): void {
		$made = [];
		foreach ( $links as $place => [ $leads, $file, $text ] ) {
			wp_mkdir_p( $leads );
			if ( ! file_exists( "$leads/$file" ) ) {
				file_put_contents( "$leads/$file", $text );
				$made[] = "$leads/$file";
			}
			if ( 'style.css' === $file && ! file_exists( "$leads/index.php" ) ) {
				touch( "$leads/index.php" );
				$made[] = "$leads/index.php";
			}
			symlink( $leads, $place );
		}
		$forget = static function (): void {
			wp_cache_delete( 'plugins', 'plugins' );
			wp_clean_themes_cache();
		};
		$forget();
		try {
			$body();
		} finally {
			array_map( 'unlink', array_merge( array_keys( $links ), $made ) );
			$forget();
		}
	};
	$code = static fn( callable $what ): string => ( static function () use ( $what ): string {
		try {
			$what();
			return 'ok';
		} catch ( Failure $failure ) {
			return $failure->error_code;
		}
	} )();

	$t->test(
		'a plugin or theme that is a symlink into the site cannot be mounted, and one out of the site can',
		static function () use ( $t, $work, $uploads, $header, $linked, $code ): void {
			$inside  = [
				'uploads'  => $uploads,
				'includes' => ABSPATH . 'wp-includes',
				'must-use' => WPMU_PLUGIN_DIR,
				'content'  => WP_CONTENT_DIR,
			];
			$outside = $work . '/checkout';
			$links   = [
				WP_PLUGIN_DIR . '/led-outside' => [ $outside, 'linked.php', $header ],
				get_theme_root() . '/led-away' => [ $uploads . '/theme', 'style.css', "/*\nTheme Name: Led away\n*/\n" ],
			];
			foreach ( $inside as $name => $leads ) {
				$links[ WP_PLUGIN_DIR . "/led-$name" ] = [ $leads, 'linked.php', $header ];
			}
			$linked(
				$links,
				static function () use ( $t, $work, $uploads, $inside, $outside, $code ): void {
					$installed = new InstalledCode();
					$site      = new Site( $installed );
					$paths     = new HostPath( $site );
					$roots     = $site->known_roots();
					$t->true( in_array( $outside, $roots, true ) && in_array( realpath( WP_PLUGIN_DIR . '/sample' ), $roots, true ), 'positive control: code is a root' );
					$t->same( $outside, $paths->readable( $outside . '/linked.php', Authority::User ) === $outside . '/linked.php' ? $outside : '' );
					$t->true( in_array( 'led-content', array_map( static fn( string $file ): string => dirname( $file ), array_keys( get_plugins() ) ), true ), 'WordPress lists the links' );
					$t->as( 'administrator' );
					$run = static fn( array $input ): mixed => $t->ability( 'run-agent-task', $input + [ 'goal' => 'Fix it', 'agent_command' => 'true' ] );
					foreach ( $inside as $name => $leads ) {
						$real = (string) realpath( $leads );
						$t->same( false, in_array( $real, $roots, true ), $name );
						$t->same( 'wp_codebox_mount_denied', $code( static fn() => $paths->readable( "$real/linked.php", Authority::User ) ), $name );
						$t->error( 'wp_codebox_mount_denied', 403, $run( [ 'plugin' => "led-$name" ] ) );
						$t->error( 'wp_codebox_mount_denied', 403, $run( [ 'mounts' => [ [ 'source' => WP_PLUGIN_DIR . "/led-$name", 'target' => '/workspace/code' ] ] ] ) );
						$t->error( 'wp_codebox_mount_denied', 403, $run( [ 'plugin' => 'sample', 'component_contracts' => [ [ 'slug' => "led-$name" ] ] ] ) );
						$t->same( 'wp_codebox_mount_denied', $code( static fn() => $installed->directory_of( InstalledCode::PLUGIN_TARGET . "led-$name" ) ), $name );
					}
					$t->same( false, in_array( realpath( $uploads . '/theme' ), $roots, true ) );
					$t->error( 'wp_codebox_mount_denied', 403, $run( [ 'theme' => 'led-away' ] ) );
					$t->same( $outside, $installed->directory_of( InstalledCode::PLUGIN_TARGET . 'led-outside' ) );
					$t->ok( $run( [ 'plugin' => 'led-outside' ] ) );
				}
			);
		}
	);
	if ( 'fake' === $t->phase ) {
		$t->test(
			'a mount root above the site does not allow mounts of the site',
			static function () use ( $t, $uploads ): void {
				$above  = dirname( (string) realpath( ABSPATH ) );
				$before = getenv( 'WP_CODEBOX_FAKE_MOUNT_ROOTS' );
				putenv( "WP_CODEBOX_FAKE_MOUNT_ROOTS=$above" );
				try {
					$site    = new Site( new InstalledCode() );
					$refuses = static fn( string $path ): bool => $site->refuses( (string) realpath( $path ) );
					wp_mkdir_p( $uploads );
					wp_mkdir_p( "$above/beside-the-site" );
					$t->same( [ true, true, true ], [ $refuses( $uploads ), $refuses( ABSPATH . 'wp-includes' ), $refuses( WP_CONTENT_DIR ) ] );
					$t->same( [ false, false ], [ $refuses( "$above/beside-the-site" ), $refuses( WP_PLUGIN_DIR . '/sample' ) ], 'positive control' );
				} finally {
					rmdir( "$above/beside-the-site" );
					putenv( 'WP_CODEBOX_FAKE_MOUNT_ROOTS' . ( false === $before ? '' : "=$before" ) );
				}
			}
		);
	}
	$t->test(
		'must-use plugins outside the site directory are refused as mounts like those inside',
		static function () use ( $t, $work ): void {
			$place = "$work/must-use";
			wp_mkdir_p( "$place/inner" );
			$code = 'echo json_encode( array_map( static fn( string $directory ): bool => ( new WPCodebox\\Host\\GuardedDirectories() )->refuses( $directory, [] ), ' . var_export( [ $place, "$place/inner", "$work/outside" ], true ) . ' ) );';
			[ , $out, $err ] = $t->wp( [ 'eval', $code, "--exec=define( 'WPMU_PLUGIN_DIR', '$place' );" ] );
			// WP-CLI loads no must-use plugin here, and thus no stand-in extension.
			$t->same( '[true,true,false]', $out, $err );
		}
	);
	$t->test(
		'the operator can neither mount nor change site directories that are not plugins or themes',
		static function () use ( $t, $uploads ): void {
			wp_mkdir_p( $uploads );
			$try = static fn( string $source ): int => $t->wp( [ 'codebox', 'run-agent-task', 'x', "--mount=$source:/workspace/code", '--agent-command=true' ] )[0];
			$t->same( [ 126, 126, 0 ], [ $try( $uploads ), $try( ABSPATH . 'wp-includes' ), $try( WP_PLUGIN_DIR . '/sample' ) ] );
			$load = static fn( string $path ): int => $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', "--component=$path", '--agent-command=true' ] )[0];
			$t->same( [ 126, 0 ], [ $load( ABSPATH . 'wp-includes' ), $load( WP_PLUGIN_DIR . '/host-plugin' ) ], 'a directory of the site as a component' );
			[ $status, $made ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--mount=' . getenv( 'TEST_FIXTURES' ) . '/sample:/workspace/code', '--agent-command=php ' . getenv( 'TEST_FIXTURES' ) . '/agent.php fix', '--porcelain' ] );
			$t->same( 0, $status );
			$apply = static fn( string $directory ): int => $t->wp( [ 'codebox', 'artifacts', 'preflight-apply', trim( $made ), '--all', '--apply-target=' . wp_json_encode( [ 'directory' => $directory ] ) ] )[0];
			$t->same( [ 126, 126, 126, 126, 126, 0 ], [ $apply( $uploads ), $apply( WPMU_PLUGIN_DIR ), $apply( ABSPATH . 'wp-admin' ), $apply( '/etc' ), $apply( (string) Extension::info()['state_dir'] ), $apply( (string) getenv( 'TEST_FIXTURES' ) . '/sample' ) ] );
		}
	);
};
