/**
 * Entry of workbench.js: reads what PHP printed, and builds the page.
 *
 * Host plugins use `window.wpCodeboxBrowser`: `events` and `tools`. Once this object exists, the document gets the event
 * `wp-codebox-browser-ready`.
 */
import type { StartPlaygroundWeb } from '../engine/api';
import type { EventBus } from './bus';
import { failure } from './failure';
import { pageSettings } from './page';
import type { ToolRegistry } from './tools';
import { problem } from './view/dom';
import { Workbench } from './workbench';
import './workbench.css';

declare global {
	interface Window {
		wpCodeboxBrowserPage?: unknown;
		wpCodeboxBrowser?: { events: EventBus; tools: ToolRegistry };
	}
}

function element(): HTMLElement {
	const found = document.getElementById( 'wp-codebox-browser' );
	if ( found ) {
		return found;
	}
	const made = document.createElement( 'div' );
	( document.getElementById( 'wpbody-content' ) ?? document.body ).append( made );
	return made;
}

function main(): void {
	const place = element();
	try {
		const workbench = new Workbench( pageSettings( window.wpCodeboxBrowserPage ), place, ( url ) => import( url ) as Promise< { startPlaygroundWeb: StartPlaygroundWeb } > );
		window.wpCodeboxBrowser = { ...window.wpCodeboxBrowser, events: workbench.events, tools: workbench.tools };
		document.dispatchEvent( new CustomEvent( 'wp-codebox-browser-ready', { detail: window.wpCodeboxBrowser } ) );
		void workbench.start();
	} catch ( thrown ) {
		place.replaceChildren( problem( failure( thrown ) ) );
	}
}

if ( 'loading' === document.readyState ) {
	document.addEventListener( 'DOMContentLoaded', main );
} else {
	main();
}
