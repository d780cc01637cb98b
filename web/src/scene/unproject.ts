// From the pointer to a point of the space: where a dragged token goes.
import { Vector3 } from "three";
import type { Viewpoint } from "./viewpoint.ts";

/**
 * The point under the pixel, in scene coordinates.
 *
 * On the sphere it is the nearer or the farther meeting point with the line of sight, as `front` says; where the
 * line misses the sphere, the point of the sphere closest to it. In the box the token keeps its distance.
 */
export function pointUnder(view: Viewpoint, x: number, y: number, from: Vector3, front: boolean): Vector3 {
  const { origin, direction } = view.ray(x, y);
  if (view.stage === "sphere") return onSphere(origin, direction, front);
  if (view.stage === "box") {
    const sight = view.camera.getWorldDirection(new Vector3());
    return onPlane(origin, direction, from, sight);
  }
  const place = onPlane(origin, direction, new Vector3(), new Vector3(0, 0, 1));
  if (view.stage === "plane") return place;
  return place.length() > 1e-9 ? place.normalize() : from.clone();
}

function onSphere(origin: Vector3, direction: Vector3, front: boolean): Vector3 {
  // |origin + s direction|^2 = 1 with |direction| = 1.
  const middle = -origin.dot(direction);
  const inside = middle * middle - origin.lengthSq() + 1;
  const step = inside <= 0 ? middle : middle + (front ? -1 : 1) * Math.sqrt(inside);
  return origin.clone().addScaledVector(direction, step).normalize();
}

function onPlane(origin: Vector3, direction: Vector3, through: Vector3, normal: Vector3): Vector3 {
  const step = through.clone().sub(origin).dot(normal) / direction.dot(normal);
  return origin.clone().addScaledVector(direction, step);
}
