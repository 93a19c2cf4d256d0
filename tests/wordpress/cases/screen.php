<?php
/**
 * The PHP part of the admin screen: access to the page, and that no other code depends on it.
 * The browser suite tests its appearance and behavior.
 */

declare(strict_types=1);

use WPCodebox\Capabilities;
use WPCodebox\Screen\AdminScreen;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	require_once ABSPATH . 'wp-admin/includes/admin.php';
	$screen = new AdminScreen( WP_PLUGIN_DIR . '/wp-codebox/wp-codebox.php', new Capabilities(), 'http://localhost/settings' );
	// Returns the capability that the registered admin page requires, or null when no page is registered.
	$page   = static function () use ( $screen ): ?string {
		$GLOBALS['submenu'] = [];
		$screen->add();
		foreach ( $GLOBALS['submenu']['tools.php'] ?? [] as $row ) {
			if ( AdminScreen::SLUG === $row[2] ) {
				return $row[1];
			}
		}
		return null;
	};
	// Calls the body while the filter is added to the hook.
	$with   = static function ( string $hook, callable $filter, callable $body ): mixed {
		add_filter( $hook, $filter, 10, 3 );
		try {
			return $body();
		} finally {
			remove_filter( $hook, $filter, 10 );
		}
	};

	$t->test(
		'the admin page exists only for users who may review or run',
		static function () use ( $t, $page, $with ): void {
			wp_set_current_user( 1 );
			$t->same( Capabilities::REVIEW, $page() );
			$no_review = static fn( bool $allowed, string $capability ): bool => $allowed && Capabilities::RUN === $capability;
			$t->same( Capabilities::RUN, $with( 'wp_codebox_can_run_agent_task', $no_review, $page ) );
			$t->same( null, $with( 'wp_codebox_can_run_agent_task', '__return_false', $page ) );
			wp_set_current_user( 0 );
			$t->same( null, $page() );
			$t->as( 'editor' );
			$t->same( null, $page() );
			if ( is_multisite() ) {
				$one = get_user_by( 'login', 'siteadmin' );
				wp_set_current_user( $one ? $one->ID : wp_insert_user( [ 'user_login' => 'siteadmin', 'user_pass' => wp_generate_password(), 'user_email' => 'siteadmin@example.org', 'role' => 'administrator' ] ) );
				$t->same( [ true, null ], [ current_user_can( 'manage_options' ), $page() ], 'an administrator of one site' );
			}
		}
	);
	$t->test(
		'the admin page has a help tab',
		static function () use ( $t, $page ): void {
			wp_set_current_user( 1 );
			$page();
			set_current_screen( 'tools_page_' . AdminScreen::SLUG );
			do_action( 'load-' . get_plugin_page_hookname( AdminScreen::SLUG, 'tools.php' ) );
			$t->contains( 'choose the files you approve', (string) ( get_current_screen()->get_help_tab( 'wp-codebox-screen' )['content'] ?? '' ) );
			set_current_screen( 'front' );
		}
	);
	$t->test(
		'the screen filter removes the page unless it returns true',
		static function () use ( $t, $page, $with ): void {
			wp_set_current_user( 1 );
			foreach ( [ false, null, 1, 'yes' ] as $answer ) {
				$t->same( null, $with( 'wp_codebox_screen_enabled', static fn(): mixed => $answer, $page ) );
			}
			$t->same( Capabilities::REVIEW, $with( 'wp_codebox_screen_enabled', '__return_true', $page ) );
		}
	);
	$t->test(
		'the admin page is an empty element with the capabilities of its user as an attribute',
		static function () use ( $t, $screen, $with ): void {
			wp_set_current_user( 1 );
			$print = static function () use ( $screen ): string {
				ob_start();
				$screen->render();
				return (string) ob_get_clean();
			};
			$t->contains( 'data-may="run review apply" data-settings="http://localhost/settings"></div>', $print() );
			$no_apply = static fn( bool $allowed, string $capability ): bool => $allowed && Capabilities::APPLY !== $capability;
			$t->contains( 'data-may="run review" data-settings="http://localhost/settings"></div>', $with( 'wp_codebox_can_run_agent_task', $no_apply, $print ) );
		}
	);
	$t->test(
		'only Plugin.php uses classes of the admin screen, and these use no service class',
		static function () use ( $t ): void {
			$root    = getenv( 'TEST_ROOT' );
			$naming  = [];
			$reading = [];
			foreach ( [ 'plugin-php', 'abilities', 'wp-cli', 'share' ] as $folder ) {
				$files = new RecursiveIteratorIterator( new RecursiveDirectoryIterator( "$root/$folder", FilesystemIterator::SKIP_DOTS ) );
				foreach ( $files as $file ) {
					$name = substr( (string) $file, strlen( $root ) + 1 );
					$text = 'php' === $file->getExtension() ? (string) file_get_contents( (string) $file ) : '';
					if ( str_starts_with( $name, 'plugin-php/includes/Screen/' ) ) {
						preg_match_all( '/^use (?:const )?(WPCodebox\\\\[^;]+);/m', $text, $found );
						array_push( $reading, ...$found[1] );
					} elseif ( preg_match( '~AdminScreen|assets/screen|wp-codebox-screen~', $text ) ) {
						$naming[] = $name;
					}
				}
			}
			$t->same( [ 'plugin-php/includes/Plugin.php' ], $naming );
			$t->same( [ 'WPCodebox\Capabilities', 'WPCodebox\VERSION' ], $reading );
		}
	);
	$t->test(
		'the scripts build no markup or code from strings and load nothing from other hosts',
		static function () use ( $t ): void {
			$forbidden = '~innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML|\beval\b|new Function|srcdoc|jQuery|\$\(|https?://|set(?:Timeout|Interval)\(\s*[\'"`]~';
			$scripts   = glob( getenv( 'TEST_ROOT' ) . '/plugin-php/assets/screen/*.{js,css}', GLOB_BRACE );
			$t->true( count( $scripts ) > 5, 'too few scripts were found' );
			foreach ( $scripts as $script ) {
				$t->same( 0, preg_match( $forbidden, (string) file_get_contents( $script ), $found ), basename( $script ) . ': ' . ( $found[0] ?? '' ) );
			}
			$t->same( 1, preg_match( $forbidden, 'element.innerHTML = goal' ), 'positive control' );
		}
	);
};
