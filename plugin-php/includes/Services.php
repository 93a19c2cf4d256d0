<?php
/**
 * The services that abilities and commands call.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Apply\ApplyPayload;
use WPCodebox\Apply\ApplyResult;
use WPCodebox\Apply\ApplyService;
use WPCodebox\Apply\ApplyTargets;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\Apply\BundleHistory;
use WPCodebox\Apply\BundleTrust;
use WPCodebox\Browser\ArchiveWriter;
use WPCodebox\Browser\BrowserHost;
use WPCodebox\Browser\BrowserServices;
use WPCodebox\Browser\BundleSeed;
use WPCodebox\Browser\CoreArchive;
use WPCodebox\Browser\EngineFiles;
use WPCodebox\Browser\NormalizeService;
use WPCodebox\Browser\PersistService;
use WPCodebox\Browser\PrivateDirectory;
use WPCodebox\Browser\PrivateFiles;
use WPCodebox\Browser\RuntimeFiles;
use WPCodebox\Browser\RuntimeInstall;
use WPCodebox\Browser\SeedArchives;
use WPCodebox\Browser\SessionAudit;
use WPCodebox\Browser\SiteAssets;
use WPCodebox\Browser\StoredSessions;
use WPCodebox\Connector\ActiveSecrets;
use WPCodebox\Connector\BridgeAuthentication;
use WPCodebox\Connector\ConnectorRequests;
use WPCodebox\Connector\ConnectorSource;
use WPCodebox\Connector\ProviderBridge;
use WPCodebox\Connector\ProviderRequests;
use WPCodebox\Connector\TrustedCallers;
use WPCodebox\DirectApply\HealthCheck;
use WPCodebox\DirectApply\RollbackService;
use WPCodebox\DirectApply\SensitiveFiles;
use WPCodebox\Host\ArtifactsRoot;
use WPCodebox\Host\HostPath;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\HostPlugin\HostDelegation;
use WPCodebox\Model\Connectors;
use WPCodebox\Model\Inheritance;
use WPCodebox\Model\ModelChoice;
use WPCodebox\Model\ProviderCredentials;
use WPCodebox\Model\Providers;
use WPCodebox\Model\TaskModel;
use WPCodebox\Replay\Comparison;
use WPCodebox\Replay\ReplayPlan;
use WPCodebox\Replay\ReplayService;
use WPCodebox\Review\ReviewDecision;
use WPCodebox\Review\ReviewResult;
use WPCodebox\Review\ReviewService;
use WPCodebox\Review\StageService;
use WPCodebox\Run\AgentChoice;
use WPCodebox\Run\BatchService;
use WPCodebox\Run\ComponentPlan;
use WPCodebox\Run\EarlierBundle;
use WPCodebox\Run\FanoutService;
use WPCodebox\Run\MountPlan;
use WPCodebox\Run\ParentTools;
use WPCodebox\Run\RequestBuilder;
use WPCodebox\Run\RequesterShare;
use WPCodebox\Run\RunEnvelope;
use WPCodebox\Run\RunRegistry;
use WPCodebox\Run\RunService;
use WPCodebox\Run\SecretChoice;
use WPCodebox\Run\TaskLimits;
use WPCodebox\Run\ToolChoice;
use WPCodebox\RunnerWorkspace\WorkspaceService;
use WPCodebox\Runtime\RequiredCode;
use WPCodebox\Runtime\RuntimePackages;
use WPCodebox\Runtime\RuntimeRequirements;
use WPCodebox\Runtime\RuntimeTasks;
use WPCodebox\TaskInput\StagedFiles;
use WPCodebox\TaskInput\TaskInput;
use WPCodebox\Transfer\DownloadService;
use WPCodebox\Transfer\ExportService;
use WPCodebox\Transfer\ImportService;
use WPCodebox\Workload\FuzzSuites;
use WPCodebox\Workload\WorkloadRequest;
use WPCodebox\Workload\WorkloadService;

defined( 'ABSPATH' ) || exit;

/**
 * Creates each service once. The constructor does no other work and does not call the extension.
 */
final class Services {

	/** Finds the directories of installed plugins and themes. */
	public readonly InstalledCode $code;
	/** Id and directories of this site. */
	public readonly Site $site;
	/** Settings of the whole installation. */
	public readonly Settings $settings;
	/** Finds the connectors whose credentials a task inherits. */
	public readonly Inheritance $inheritance;
	/** Model providers that tasks may use. */
	public readonly Providers $providers;
	/** Runs one agent task in a sandbox. */
	public readonly RunService $runs;
	/** Runs several agent tasks one after the other. */
	public readonly BatchService $batches;
	/** Runs several agent tasks (workers) in parallel. */
	public readonly FanoutService $fanouts;
	/** Decides which runs and bundles a caller may see. */
	public readonly Access $access;
	/** Lists, reads and cancels runs. */
	public readonly RunRegistry $registry;
	/** Reads and discards artifact bundles. */
	public readonly ArtifactService $artifacts;
	/** Checks approved changes and passes them to the host plugin that applies them. */
	public readonly ApplyService $applies;
	/** Takes applied changes back. */
	public readonly RollbackService $rollbacks;
	/** Stages changes that a user accepts later. */
	public readonly StageService $stages;
	/** Carries out and records review decisions about bundles. */
	public readonly ReviewService $reviews;
	/** Imports artifact bundles. */
	public readonly ImportService $imports;
	/** Stores files that a browser uploaded as bundles. */
	public readonly PersistService $browser_artifacts;
	/** Checks documents that a browser made. */
	public readonly NormalizeService $browser_documents;
	/** Exports artifact bundles as archives. */
	public readonly ExportService $exports;
	/** Downloads approved files. */
	public readonly DownloadService $downloads;
	/** Runs the task of a bundle again and compares the results. */
	public readonly ReplayService $replays;
	/** Reads the audit log. */
	public readonly AuditLog $audit;
	/** Decides whether a caller may use a scope (right for browser sandboxes). */
	public readonly TrustedCallers $callers;
	/** Sends requests of browser sandboxes through connectors of this site. */
	public readonly ConnectorRequests $connector_requests;
	/** Sends requests in the older format through provider adapters. */
	public readonly ProviderRequests $provider_requests;
	/** Built-in provider adapter: sends requests in the older format over HTTP. */
	public readonly ProviderBridge $bridge;
	/** Runs tasks in the runtime that they name. */
	public readonly RuntimeTasks $tasks;
	/** Runs workflows of agent packages. */
	public readonly RuntimePackages $packages;
	/** Shows what a task needs and whether this site has it. */
	public readonly RuntimeRequirements $requirements;
	/** Runs commands in a WordPress of a disposable sandbox. */
	public readonly WorkloadService $workloads;
	/** Runs fuzz suites as workloads. */
	public readonly FuzzSuites $fuzz;
	/** Passes tasks to a plugin of this site. */
	public readonly HostDelegation $delegations;
	/** Passes requests about runner workspaces to the backend of this site. */
	public readonly WorkspaceService $workspaces;
	/** Stores the archives that browser sandboxes download. */
	public readonly PrivateFiles $browser_files;
	/** Installs the runtime files of browser sandboxes. */
	public readonly RuntimeInstall $browser_runtime;
	/** Sessions of WordPress in the visitor's browser. */
	public readonly BrowserServices $browser;

	/**
	 * Creates all services.
	 *
	 * @param ExtensionGate $gate    Check that the PHP extension is loaded and its version fits.
	 * @param SchemaStore   $schemas Loader of the JSON schemas.
	 */
	public function __construct( public readonly ExtensionGate $gate, public readonly SchemaStore $schemas ) {
		$this->code      = new InstalledCode();
		$this->site      = new Site( $this->code );
		$this->settings  = new Settings();
		$audit           = new AuditTrail( $this->site );
		$trust           = new BundleTrust( $this->settings );
		$targets         = new ApplyTargets( $this->code, $this->site );
		$paths           = new HostPath( $this->site );
		$this->audit     = new AuditLog( $gate, $this->site );
		$root            = new ArtifactsRoot( $this->site );
		$this->artifacts = new ArtifactService( $gate, $this->site, $root, $audit, new BundleHistory( $this->site ), $this->settings );
		$envelope        = new RunEnvelope();
		$connectors        = new Connectors();
		$this->inheritance = new Inheritance( $connectors );
		$this->providers   = new Providers( $this->settings );
		$models            = new ModelChoice( $this->settings, $this->providers, $connectors, new ProviderCredentials( $connectors ) );
		$parent_tools      = new ParentTools( $audit );
		$capabilities      = new Capabilities();
		$this->access      = new Access( $gate, $this->site, $root, $capabilities );
		$shares            = new RequesterShare( $this->settings, $capabilities );
		$requests          = new RequestBuilder(
			$this->site,
			new MountPlan( $this->code ),
			new ComponentPlan( $this->settings, $this->code, $this->site ),
			new AgentChoice( $this->settings, $models ),
			new TaskModel( $this->inheritance, $models ),
			new ToolChoice(),
			$parent_tools,
			new SecretChoice(),
			new TaskLimits( $this->settings ),
			new EarlierBundle( $this->access ),
			new TaskInput( $schemas, $this->settings ),
			new StagedFiles( $this->site ),
			$shares
		);
		$this->runs      = new RunService( $gate, $requests, $envelope, $this->site, $audit, $parent_tools );
		$this->batches   = new BatchService( $gate, $this->runs, $schemas, $this->site );
		$this->fanouts   = new FanoutService( $gate, $this->runs, $schemas, $this->site );
		$payloads        = new ApplyPayload( $this->artifacts, $targets, $trust, $audit, $this->settings, $capabilities, new SensitiveFiles() );
		$this->registry  = new RunRegistry( $gate, $this->site, $this->access, $envelope, $audit );
		$applied         = new ApplyResult();
		$health          = new HealthCheck( $this->settings );
		$this->applies   = new ApplyService( $gate, $payloads, $applied, $audit, $this->settings );
		$this->rollbacks = new RollbackService( $gate, $this->artifacts, $this->site, $health, $audit );
		$this->stages    = new StageService( $gate, $payloads, $audit );
		$this->reviews   = new ReviewService( $gate, $this->artifacts, $payloads, $this->applies, new ReviewDecision( $audit ), new ReviewResult( $applied ), $capabilities, $audit );
		$this->callers   = new TrustedCallers( $this->settings, $capabilities );
		$this->imports   = new ImportService( $gate, $this->artifacts, $trust, $paths, $this->site, $audit, $this->callers );
		$this->exports   = new ExportService( $this->artifacts, $paths, $this->site, $audit );
		$this->downloads = new DownloadService( $this->artifacts, $paths, $this->site, $audit );
		$this->replays   = new ReplayService( $gate, $this->artifacts, $trust, new ReplayPlan( $targets ), new Comparison(), $this->runs, $this->access, $audit );
		$source          = new ConnectorSource( $this->inheritance );
		$secrets         = new ActiveSecrets();
		$this->bridge    = new ProviderBridge( $secrets, new BridgeAuthentication( $secrets ) );

		$this->connector_requests = new ConnectorRequests( $gate, $this->callers, $source, $audit );
		$this->provider_requests  = new ProviderRequests( $gate, $this->callers, $source, $secrets, $audit );

		$this->tasks        = new RuntimeTasks( $gate, $this->runs, $schemas );
		$this->packages     = new RuntimePackages( $gate, $this->runs, $schemas );
		$this->requirements = new RuntimeRequirements( $gate, $this->settings, $this->providers, $this->inheritance, new RequiredCode( $this->settings, $this->code ), new SecretChoice() );
		$this->workloads    = new WorkloadService( $gate, new WorkloadRequest( $this->site, new MountPlan( $this->code ), new StagedFiles( $this->site ), new TaskLimits( $this->settings ), $shares ), $this->site, $audit, $schemas );
		$this->fuzz         = new FuzzSuites( $gate, $this->workloads );
		$this->delegations  = new HostDelegation( $gate, $audit );
		$this->workspaces   = new WorkspaceService( $gate, $audit );

		$directory             = new PrivateDirectory( $this->site );
		$runtime               = new RuntimeFiles( new EngineFiles( dirname( __DIR__ ) . '/wp-codebox.php' ) );
		$this->browser_files   = new PrivateFiles( $directory, $this->site->id() );
		$this->browser_runtime = new RuntimeInstall( $runtime );
		$writer                = new ArchiveWriter( $this->browser_files );
		$bundles               = new BundleSeed( $this->access, $this->artifacts, $targets, $this->site, $this->browser_files );
		$assets                = new SiteAssets( $runtime, BrowserHost::of_site(), new CoreArchive( $directory, $this->browser_files, $writer ), new SeedArchives( $this->code, $writer, $bundles ), $this->browser_files );
		$this->browser         = new BrowserServices( $schemas, $this->code, $this->callers, $this->inheritance, $this->delegations, $capabilities, new SessionAudit( $gate, $audit ), $assets );

		$this->browser_documents = new NormalizeService( $gate );
		$this->browser_artifacts = new PersistService( $gate, new StoredSessions( $this->browser->sessions, $this->browser_files ), $this->artifacts, $this->site, $audit, $this->callers );
	}
}
