<?php
/**
 * Creates the objects of the plugin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use Closure;
use WPCodebox\Abilities\Registrar;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Admin\BrowserFields;
use WPCodebox\Admin\BrowserHealth;
use WPCodebox\Admin\DebugInfo;
use WPCodebox\Admin\IsolationHealth;
use WPCodebox\Admin\ModelHealth;
use WPCodebox\Admin\Notices;
use WPCodebox\Admin\PersonalData;
use WPCodebox\Admin\SettingsForm;
use WPCodebox\Admin\SettingsPage;
use WPCodebox\Admin\SiteHealth;
use WPCodebox\Api\RuntimeFacts;
use WPCodebox\Browser\BrowserHost;
use WPCodebox\Browser\BrowserPage;
use WPCodebox\Browser\CoreArchive;
use WPCodebox\Browser\EngineFiles;
use WPCodebox\Browser\FileRoute;
use WPCodebox\Browser\PrivateFiles;
use WPCodebox\Browser\RuntimeFiles;
use WPCodebox\Browser\RuntimeInstall;
use WPCodebox\Browser\SandboxLinks;
use WPCodebox\Browser\SessionStore;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\SettingChecks;
use WPCodebox\Host\SettingRules;
use WPCodebox\Host\Site;
use WPCodebox\Review\PendingApply;
use WPCodebox\Runtime\RuntimeTaskRoute;

defined( 'ABSPATH' ) || exit;

/**
 * Creates the plugin's objects and connects them to WordPress's hooks. The plugin also loads without the extension.
 */
final class Plugin {

	/** Ability registrar of the running plugin, for the static methods of WP_Codebox_API. */
	private static Registrar $registrar;
	/** JSON schemas of the running plugin, for the static methods of WP_Codebox_API. */
	private static SchemaStore $schemas;
	/** Facts about this installation, for the static methods of WP_Codebox_API. */
	private static RuntimeFacts $facts;

	/**
	 * Creates the plugin with its dependencies.
	 *
	 * @param string $file Main file of the plugin.
	 */
	public function __construct( private readonly string $file ) {}

	/** Registers all hooks. */
	public function boot(): void {
		$root         = dirname( $this->file );
		$manifest     = require $root . '/abilities/manifest.php';
		$gate         = new ExtensionGate( VERSION, $manifest['contract_digest'] );
		$schemas      = new SchemaStore( $root . '/abilities/schemas' );
		$services     = static function () use ( $gate, $schemas ): Services {
			static $wired = null;
			return $wired ??= new Services( $gate, $schemas );
		};
		$capabilities = new Capabilities();
		$registrar    = new Registrar( $root . '/abilities', $schemas, $capabilities, $services );

		$state_format = static fn(): bool => add_site_option( 'wp_codebox_format', FORMAT );
		register_activation_hook( $this->file, $state_format );
		// After an update from a version that stated none.
		add_action( 'admin_init', static fn() => false === get_site_option( 'wp_codebox_format' ) && $state_format(), 10, 0 );

		self::$schemas   = $schemas;
		self::$registrar = $registrar;
		self::$facts     = new RuntimeFacts( $registrar, $schemas, $gate, $manifest['contract_digest'], static fn(): bool => $services()->browser->available() );

		Sentence::register();
		$site         = new Site( new InstalledCode() );
		$settings     = new Settings();
		$rules        = new SettingRules( new SettingChecks( $settings, $gate ) );

		$capabilities->register();
		$rules->register();
		$registrar->register();
		( new PendingApply( $capabilities, $services ) )->register();
		( new RuntimeTaskRoute( $capabilities, $gate ) )->register();
		( new Browser\BrowserRoutes() )->register();
		add_filter( 'wp_codebox_browser_provider_request', static fn( mixed $answer, mixed $request = [], mixed $input = [] ): mixed => $services()->bridge->answer( $answer, $request, $input ), 10, 3 );
		// The git branch answers before direct apply.
		( new GitBranch\GitBranch( $settings, $site, new GitBranch\Repository( $settings ) ) )->register();
		$direct = new DirectApply\DirectApply( $settings, $site, new DirectApply\SensitiveFiles(), new DirectApply\HealthCheck( $settings ), new DirectApply\RecoveryLink( $site ) );
		$direct->register();
		DirectApply\RecoveryFile::register( $this->file );
		( new Notices( $gate, $settings ) )->register();
		( new SiteHealth( $gate, $site ) )->register();
		( new ModelHealth( $settings ) )->register();
		( new DebugInfo( $gate, $site, $settings ) )->register();
		( new IsolationHealth( $gate ) )->register();
		$browser = $this->browser( $capabilities, $services, $site );
		( new SettingsPage( new SettingsForm( $settings, $gate ), $rules, $browser ) )->register();
		( new PersonalData( $gate, $site ) )->register();
		// The screen is optional: without its directory this line does nothing.
		class_exists( Screen\AdminScreen::class ) && ( new Screen\AdminScreen( $this->file, $capabilities, SettingsPage::address(), [ SandboxLinks::class, 'address' ] ) )->register();

		if ( defined( 'WP_CLI' ) && \WP_CLI ) {
			( new Cli\Registration( $services(), $capabilities ) )->register();
		}
	}

	/**
	 * Registers what serves browser sandboxes, and returns their part of the settings page.
	 *
	 * @param Capabilities         $capabilities Permission checks of the user.
	 * @param Closure(): Services  $services     Returns the services.
	 * @param Site                 $site         Site the plugin runs on.
	 */
	private function browser( Capabilities $capabilities, Closure $services, Site $site ): BrowserFields {
		$engine  = new EngineFiles( $this->file );
		$runtime = new RuntimeFiles( $engine );
		$host    = BrowserHost::of_site();
		$fields  = new BrowserFields( new RuntimeInstall( $runtime ), $host );
		$fields->register();
		( new BrowserHealth( $runtime, $fields, $host ) )->register();
		( new BrowserPage( $engine, $capabilities, new InstalledCode() ) )->register();
		( new SandboxLinks( $capabilities ) )->register();
		( new FileRoute( static fn(): PrivateFiles => $services()->browser_files, static fn( string $id ): mixed => ( new SessionStore() )->get( $id ), $site->id() ) )->register();
		add_action( PrivateFiles::CLEANUP, static fn(): int => $services()->browser_files->sweep() );
		// After an update of WordPress the stored archive is old; the next browser session packs the new core files.
		add_action( '_core_updated_successfully', [ CoreArchive::class, 'forget' ] );
		return $fields;
	}

	/** Returns the ability registrar of the running plugin. */
	public static function registrar(): Registrar {
		return self::$registrar;
	}

	/** Returns facts about this installation. */
	public static function facts(): RuntimeFacts {
		return self::$facts;
	}

	/** Returns the schemas of the running plugin. */
	public static function schemas(): SchemaStore {
		return self::$schemas;
	}
}
