<?php
/**
 * The services of browser sessions.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Capabilities;
use WPCodebox\Connector\TrustedCallers;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\HostPlugin\HostDelegation;
use WPCodebox\Model\Inheritance;

defined( 'ABSPATH' ) || exit;

/** Creates each service once. Nothing here needs the extension: a browser session runs no program of this host. */
final class BrowserServices {

	/** Creates sessions and contracts. */
	public readonly BrowserSessions $create;
	/** Opens, starts and ends sessions of sites. */
	public readonly SiteSessions $sites;
	/** Finds out whether a site can be recovered. */
	public readonly SiteStatus $status;
	/** Returns the blueprint of a session to its owner. */
	public readonly Hydration $hydration;
	/** Describes snapshots, exports and plans. */
	public readonly SiteExports $exports;
	/** Passes synchronisation to a backend of this site. */
	public readonly SiteSync $sync;
	/** Answers about pictures of archived sites. */
	public readonly ViewportReplay $replay;
	/** Records of sessions. */
	public readonly SessionStore $sessions;
	/** @var \Closure(): SessionAssets Returns the assets. */
	private readonly \Closure $assets;

	/**
	 * Creates the services.
	 *
	 * @param SchemaStore    $schemas      Loader of the JSON schemas.
	 * @param InstalledCode  $code         Finds the directories of installed plugins and themes.
	 * @param TrustedCallers $callers      Authorizes callers.
	 * @param Inheritance    $inheritance  Finds connectors.
	 * @param HostDelegation $delegations  Passes tasks to a plugin of this site.
	 * @param Capabilities   $capabilities Permission checks of the user.
	 * @param SessionAudit   $audit        Records beginnings and ends of sessions.
	 * @param SessionAssets  $own          Assets of this plugin.
	 */
	public function __construct( SchemaStore $schemas, InstalledCode $code, TrustedCallers $callers, Inheritance $inheritance, HostDelegation $delegations, Capabilities $capabilities, SessionAudit $audit, SessionAssets $own = new MissingAssets() ) {
		$assets       = static function () use ( $own ): SessionAssets {
			/**
			 * Filters the assets of browser sessions, for code of this site that serves the engine itself.
			 *
			 * @param SessionAssets $assets Assets of this plugin.
			 */
			$given = apply_filters( 'wp_codebox_browser_session_assets', $own );
			return $given instanceof SessionAssets ? $given : $own;
		};

		$this->assets    = $assets;
		$this->sessions  = new SessionStore();
		$runtimes        = new PreparedRuntimes( $this->sessions );
		$this->status    = new SiteStatus( $runtimes, $assets );
		$this->hydration = new Hydration( $this->status, $this->sessions, $assets );
		$maker           = new SessionMaker( new SessionInput( $schemas ), new CodeSources( $code ), $this->sessions, $runtimes, new RuntimeAccess( $inheritance ), $callers, $audit, $assets );
		$this->create    = new BrowserSessions( $maker, new SessionAnswers( $this->hydration ), new TaskPhases( $delegations, $capabilities ) );
		$this->sites     = new SiteSessions( $this->status, $this->sessions, $this->create, $audit );
		$this->exports   = new SiteExports( $this->sites );
		$this->sync      = new SiteSync( $this->status, $capabilities );
		$this->replay    = new ViewportReplay();
	}

	/** Returns whether this site has all files that a session needs. */
	public function available(): bool {
		try {
			( $this->assets )()->contract( 's0', 's0' );
			return true;
		} catch ( Failure ) {
			return false;
		}
	}
}
