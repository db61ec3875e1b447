"""Pure tensor functions of detection and segmentation, on keras.ops.

They keep static shapes: what would make a shape depend on values (filtering, sampling, suppression)
marks rows, or moves them to the front and pads. Boxes are (ymin, xmin, ymax, xmax) in pixels
unless a function says otherwise. All compute in float32, whatever they are given.
"""
