<?php
/**
 * Part of the settings page about browser sandboxes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use Throwable;
use WPCodebox\Browser\BrowserHost;
use WPCodebox\Browser\RuntimeInstall;
use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\PlainText;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Shows isolation and runtime files, and installs the runtime files from an uploaded archive. It is a form of its own: the
 * other settings are saved by WordPress's `options.php`, which takes no files.
 */
final class BrowserFields {

	private const ACTION = 'wp_codebox_browser_assets';
	private const FILE   = 'wp_codebox_browser_archive';
	private const NOTICE = 'wp_codebox_browser_notice_';

	/**
	 * Creates the form with its dependencies.
	 *
	 * @param RuntimeInstall $install Installer of the runtime files.
	 * @param BrowserHost    $host    Host that the sandbox is loaded from.
	 */
	public function __construct(
		private readonly RuntimeInstall $install,
		private readonly BrowserHost $host
	) {}

	/** Registers the hooks. */
	public function register(): void {
		add_action( 'admin_post_' . self::ACTION, [ $this, 'receive' ] );
	}

	/** Prints the section. */
	public function render(): void {
		printf( '<h2 id="browser-sandboxes">%s</h2>', esc_html__( 'Browser sandboxes', 'codebox' ) );
		$notice = get_transient( self::NOTICE . get_current_user_id() );
		if ( is_array( $notice ) ) {
			delete_transient( self::NOTICE . get_current_user_id() );
			printf( '<div class="notice notice-%s inline" role="alert"><p>%s</p></div>', esc_attr( (string) $notice['type'] ), esc_html( PlainText::of( (string) $notice['text'] ) ) );
		}
		printf( '<p>%s</p>', esc_html__( 'Users can open a plugin, a theme or a bundle in a WordPress that runs in their own browser. This site serves all files of that WordPress and no other host is contacted, unless wp-config.php names one (see Isolation).', 'codebox' ) );
		echo '<table class="form-table" role="presentation">';
		$this->row( __( 'Isolation', 'codebox' ), $this->isolation() );
		try {
			$status = $this->install->status();
			/* translators: 1: version of PHP, 2: size. */
			$this->row( __( 'Runtime files', 'codebox' ), [ sprintf( $status['installed'] ? __( 'Installed: PHP %1$s, %2$s.', 'codebox' ) : __( 'Not installed: PHP %1$s, %2$s.', 'codebox' ), $status['php'], (string) size_format( $status['bytes'] ) ) ] );
			echo '</table>';
			$this->form( $status );
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			$this->row( __( 'Runtime files', 'codebox' ), [ $failure->getMessage(), ...$failure->hints ] );
			echo '</table>';
		}
	}

	/** Installs or removes the runtime files as the form asks, and returns to the settings page. */
	public function receive(): void {
		check_admin_referer( self::ACTION );
		if ( ! current_user_can( Capabilities::SETTINGS ) ) {
			wp_die( esc_html__( 'You are not allowed to change these settings.', 'codebox' ), '', [ 'response' => 403 ] );
		}
		$notice = [
			'type' => 'success',
			'text' => __( 'The runtime files of browser sandboxes were installed.', 'codebox' ),
		];
		try {
			if ( isset( $_POST['remove'] ) ) {
				$this->install->remove();
				$notice['text'] = __( 'The runtime files of browser sandboxes were removed.', 'codebox' );
			} else {
				$this->install->install( self::uploaded() );
			}
		} catch ( Throwable $thrown ) {
			$notice = [
				'type' => 'error',
				'text' => Failure::from( $thrown )->getMessage(),
			];
		}
		set_transient( self::NOTICE . get_current_user_id(), $notice, MINUTE_IN_SECONDS );
		wp_safe_redirect( SettingsPage::address() . '#browser-sandboxes' );
		exit;
	}

	/**
	 * Returns the sentences about isolation.
	 *
	 * @return list<string>
	 */
	public function isolation(): array {
		try {
			$origin  = $this->host->origin();
			$outside = $this->host->outside();
		} catch ( Failure $failure ) {
			return [ $failure->getMessage(), ...$failure->hints ];
		}
		if ( '' !== $outside ) {
			/* translators: %s: origin. */
			return [ sprintf( __( 'Sandboxes are loaded from %s, which this site does not serve (constant WP_CODEBOX_PLAYGROUND_HOST in wp-config.php).', 'codebox' ), $outside ) ];
		}
		return '' === $origin
			? [
				__( 'Opaque origin: the sandbox is loaded from this site, and its documents have no access to cookies, storage and pages of this site. REST, AJAX and the block editor do not work in it.', 'codebox' ),
				__( 'To make them work, let another host name serve the same plugin directory, and set that host name in wp-config.php, for example: define( \'WP_CODEBOX_BROWSER_HOST\', \'https://sandbox.example.org\' );', 'codebox' ),
			]
			/* translators: %s: origin. */
			: [ sprintf( __( 'Separate host: the sandbox is loaded from %s (constant WP_CODEBOX_BROWSER_HOST in wp-config.php). REST, AJAX and the block editor work in it.', 'codebox' ), $origin ) ];
	}

	/**
	 * Returns the path of the uploaded archive.
	 *
	 * @throws Failure `wp_codebox_input_invalid` when there is none.
	 */
	private static function uploaded(): string {
		// phpcs:disable WordPress.Security -- receive() checked the nonce; PHP made the name, and is_uploaded_file() checks it.
		$file = isset( $_FILES[ self::FILE ] ) && is_array( $_FILES[ self::FILE ] ) ? $_FILES[ self::FILE ] : [];
		// phpcs:enable
		$path = UPLOAD_ERR_OK === ( $file['error'] ?? null ) && is_string( $file['tmp_name'] ?? null ) ? $file['tmp_name'] : '';
		if ( '' === $path || ! is_uploaded_file( $path ) ) {
			throw Failure::because(
				ErrorCode::InputInvalid,
				/* translators: %s: size, as 2 MB. */
				Sentence::of( __( 'No archive was received. This PHP accepts uploads of at most %s; "wp codebox browser-assets install" has no such limit.', 'codebox' ), (string) size_format( wp_max_upload_size() ) )
			);
		}
		return $path;
	}

	/**
	 * Prints the form.
	 *
	 * @param array<string, mixed> $status Status of the runtime files.
	 */
	private function form( array $status ): void {
		printf( '<form method="post" enctype="multipart/form-data" action="%s">', esc_url( admin_url( 'admin-post.php' ) ) );
		printf( '<input type="hidden" name="action" value="%s">', esc_attr( self::ACTION ) );
		wp_nonce_field( self::ACTION );
		printf(
			'<p><label for="%1$s">%2$s</label> <input type="file" id="%1$s" name="%1$s" accept=".zip" aria-describedby="%1$s-about"></p><p class="description" id="%1$s-about">%3$s</p>',
			esc_attr( self::FILE ),
			esc_html__( 'codebox-browser.zip of this release', 'codebox' ),
			/* translators: %s: size, as 2 MB. */
			esc_html( sprintf( __( 'Each file in it is compared with the hash in this plugin; nothing else is installed. This PHP accepts uploads of at most %s.', 'codebox' ), (string) size_format( wp_max_upload_size() ) ) )
		);
		submit_button( __( 'Install runtime files', 'codebox' ), 'secondary', 'install', false );
		if ( $status['installed'] ) {
			echo ' ';
			submit_button( __( 'Remove runtime files', 'codebox' ), 'delete', 'remove', false );
		}
		echo '</form>';
	}

	/**
	 * Prints one row of the table.
	 *
	 * @param string       $label     Heading.
	 * @param list<string> $sentences Content.
	 */
	private function row( string $label, array $sentences ): void {
		printf( '<tr><th scope="row">%s</th><td>', esc_html( $label ) );
		foreach ( $sentences as $sentence ) {
			printf( '<p>%s</p>', esc_html( PlainText::of( $sentence ) ) );
		}
		echo '</td></tr>';
	}
}
