<?php
/**
 * The services that abilities and commands call.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Apply\ApplyPayload;
use WPCodebox\Apply\ApplyResult;
use WPCodebox\Apply\ApplyService;
use WPCodebox\Apply\ApplyTargets;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Run\AgentChoice;
use WPCodebox\Run\MountPlan;
use WPCodebox\Run\RequestBuilder;
use WPCodebox\Run\RunAccess;
use WPCodebox\Run\RunEnvelope;
use WPCodebox\Run\RunRegistry;
use WPCodebox\Run\RunService;
use WPCodebox\Run\SecretChoice;

defined( 'ABSPATH' ) || exit;

/**
 * Wires the objects once; nothing here does work or touches the extension.
 */
final class Services {

	/** Installed plugins and themes. */
	public readonly InstalledCode $code;
	/** This site. */
	public readonly Site $site;
	/** Host settings. */
	public readonly Settings $settings;
	/** Runs one task. */
	public readonly RunService $runs;
	/** What is known of runs. */
	public readonly RunRegistry $registry;
	/** Bundles. */
	public readonly ArtifactService $artifacts;
	/** Preflight and apply. */
	public readonly ApplyService $applies;

	/**
	 * Wires everything.
	 *
	 * @param ExtensionGate $gate Extension check.
	 */
	public function __construct( public readonly ExtensionGate $gate ) {
		$this->code      = new InstalledCode();
		$this->site      = new Site( $this->code );
		$this->settings  = new Settings();
		$audit           = new AuditTrail( $this->site );
		$this->artifacts = new ArtifactService( $gate, $this->site, $audit );
		$envelope        = new RunEnvelope();
		$this->runs      = new RunService(
			$gate,
			new RequestBuilder( $this->site, new MountPlan( $this->code ), new AgentChoice( $this->settings ), new SecretChoice() ),
			$envelope,
			$this->site,
			$audit
		);
		$this->registry  = new RunRegistry( $gate, $this->site, new RunAccess( new Capabilities() ), $envelope, $audit );
		$this->applies   = new ApplyService(
			$gate,
			new ApplyPayload( $this->artifacts, new ApplyTargets( $this->code, $this->site ), $this->settings, $audit, $this->site ),
			new ApplyResult(),
			$audit
		);
	}
}
